#pragma once
// What a microbatch costs at each stage, for whoever balances stages: the layout and the authority's moves. Pure;
// thread-safe.
#include <vector>

#include "runtime/config/config.h"

namespace shoal {

// FLOPs of a microbatch there and back, by stage: three times those of a forward, as the balanced split counts them,
// and one forward more where [compute] recompute makes it again, which "auto" is not taken to do. 1 each where the
// executor computes whole numbers. REQUIRES: the split was checked.
std::vector<double> stage_work(const RunConfig& config);

}  // namespace shoal
