#pragma once
// `shoal-bench layout`: what planning makes of DT-FM's five cases, by its own cost (bench/dtfm_cost.h) and by ours
// (layout/layout_cost.h), beside layouts that are drawn and the best of all where all can be looked at. Thread: one;
// blocking.
#include <string>
#include <vector>

namespace shoal {

struct LayoutBenchOptions {
  std::vector<std::string> links;  // cases more: lines between regions
  bool json = false;
};

// Returns the exit code: 0, or 1 with the reason on stderr.
int run_layout_bench(const LayoutBenchOptions& options);

}  // namespace shoal
