#pragma once
// What a member must bring to the round of a step: all entries of it that won. Pure. Thread: any.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/messages.h"

namespace shoal {

// The first of the session's entries in the step that `serials` lack.
inline std::optional<std::uint64_t> missing_of_step(const Step& step, StageId stage, const Session& session,
                                                    std::vector<std::uint64_t> serials) {
  std::ranges::sort(serials);
  for (const CommitItem& item : step.winners) {
    if (stage.value >= item.path.size() || item.path[stage.value].session != session) continue;
    const std::uint64_t serial = item.path[stage.value].serial;
    if (!std::ranges::binary_search(serials, serial)) return serial;
  }
  return std::nullopt;
}

}  // namespace shoal
