#pragma once
// `shoal-bench rebalance`: what a swarm that a trace takes apart makes of those who are there, beside the best
// assignment of them: when nobody moves, as SWARM moves them, and as the authority asks them to. Thread: one; blocking.
#include <string>
#include <vector>

#include "bench/rebalance_world.h"
#include "common/result.h"

namespace shoal {

struct RebalanceOptions {
  std::vector<std::string> traces;
  RebalanceWorld world;
  std::uint64_t seeds = 10;  // the mean of so many counts
  bool json = false;
};

Status run_rebalance_bench(const RebalanceOptions& options);

}  // namespace shoal
