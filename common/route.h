#pragma once
// Which stages a microbatch passes before and behind one. A value; thread-safe.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/ids.h"

namespace shoal {

struct Route {
  std::optional<StageId> before;  // none: what the stage needs comes from the trainer
  std::optional<StageId> next;    // none: the loss is made here
  std::size_t behind = 0;         // how many stages it passes behind this one
};

// In a pipeline one stage stands behind the other: nobody else needs to know it. REQUIRES: the run has `stages` stages,
// and `stage` is one of them.
constexpr Route route_of(StageId stage, std::uint16_t stages) {
  Route route;
  if (stage.value > 0) route.before = StageId(static_cast<std::uint16_t>(stage.value - 1));
  if (stage.value + 1 < stages) route.next = StageId(static_cast<std::uint16_t>(stage.value + 1));
  route.behind = stages - stage.value - std::size_t{1};
  return route;
}

}  // namespace shoal
