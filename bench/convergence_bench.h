#pragma once
// shoal-bench convergence: what each codec between stages does to what a model learns. A grid of codecs and seeds, each
// cell one `shoal solo --wire` in a process of its own: trained on one text, and, from what the same seed learnt
// without codecs, fine-tuned on another one. Every result is appended to a file at once, and a cell that the file has
// is not trained again.
// Thread: one; blocking.
#include <string>
#include <vector>

#include "bench/convergence_grid.h"
#include "bench/grid_cells.h"

namespace shoal {

struct ConvergenceOptions : GridOptions {
  ConvergenceOptions() : GridOptions{.rows = "convergence.jsonl", .seeds = {1, 2, 3}} {}
  ConvergenceSetting setting;
  std::vector<std::string> codecs{"raw",       "bf16",     "int8",     "int4",      "int4-hadamard",
                                  "int2",      "raw/int4", "raw/int2", "int4/int8", "aq4/int8",
                                  "int2/int4", "aq2/int4", "aq2/int8"};
  std::string models = "convergence-models";  // what fine-tuning begins from; folders by key
};

// Returns the exit code: 0, or 1 with the reason on stderr.
int run_convergence_bench(const ConvergenceOptions& options);

}  // namespace shoal
