#include "common/work_queue.h"

#include <array>

namespace shoal {

std::string_view name_of(WorkKind task) {
  static constexpr std::array<std::string_view, kWorkKinds> kNames = {
      "forward", "evaluate", "backward", "undo", "write", "shift", "release", "snapshot", "commit",
      "abandon", "build",    "seed",     "load", "image", "drop",  "text",    "aside"};
  return kNames[static_cast<std::size_t>(task)];
}

}  // namespace shoal
