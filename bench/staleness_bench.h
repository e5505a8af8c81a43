#pragma once
// shoal-bench staleness: what late gradients cost, and what the optimiser's look-ahead gives back. A grid of delays,
// look-aheads, learning rates and seeds; each cell is one `shoal solo --delay-profile` in a process of its own. Every
// result is appended to a file at once, and a cell that the file has is not trained again.
// Thread: one; blocking.
#include <string>
#include <vector>

#include "bench/grid_cells.h"
#include "bench/staleness_grid.h"

namespace shoal {

struct StalenessOptions : GridOptions {
  StalenessOptions() : GridOptions{.rows = "staleness.jsonl", .seeds = {1}} {}
  StalenessSetting setting;
  std::vector<std::string> delays{"0", "0.5", "1", "2", "4"}, profiles, look_aheads{"0", "1"};
  std::vector<double> rates{5e-4, 1e-3, 2e-3, 4e-3};
};

// Returns the exit code: 0, or 1 with the reason on stderr.
int run_staleness_bench(const StalenessOptions& options);

}  // namespace shoal
