#pragma once
// `shoal-bench layout`: what planning makes of DT-FM's five cases, by its own cost (bench/dtfm_cost.h) and by ours
// (layout/layout_cost.h), beside layouts that are drawn and the best of all where all can be looked at. Thread: one;
// blocking.
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

struct LayoutBenchOptions {
  std::vector<std::string> links;  // cases more: lines between regions
  bool json = false;
};

Status run_layout_bench(const LayoutBenchOptions& options);

}  // namespace shoal
