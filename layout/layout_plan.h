#pragma once
// Which peer should serve which stage: the layout of most worth (layout_cost.h) that climbing finds, or the best there
// is where there are few. Pure: no I/O, no clock; the same shape gives the same layout. Thread: any.
#include <cstdint>

#include "common/result.h"
#include "layout/layout_cost.h"
#include "layout/layout_search.h"

namespace shoal {

// So many layouts are looked at one by one; where there are more, climbing looks for a good one.
inline constexpr std::uint64_t kLookedAtOneByOne = 2'000;

// The problem of a shape, for climb() and best_of_all(). Borrows both.
LayoutProblem problem_of(const SwarmShape& shape, const LayoutCost& cost);

// What climbing begins with, each balanced by the sums of speeds as well as one peer after the other can be: by speed
// alone, the fastest first; region after region, each spread over all stages, so that microbatches stay inside; and the
// stages filled one after the other by regions that are near each other, so that rounds stay inside.
// ERRORS: kInput (fewer peers than stages; a peer that fits no stage, a stage that no peer is left for).
Result<std::vector<Layout>> layout_starts(const SwarmShape& shape);

struct PlannedLayout {
  Layout layout{};
  bool is_best = false;  // all were looked at
};
// ERRORS: as layout_starts().
Result<PlannedLayout> plan_layout(const SwarmShape& shape);

}  // namespace shoal
