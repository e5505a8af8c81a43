#pragma once
// What a run came to, as the text of the object of `launch --json` and of the run folder's summary.json (docs/CLI.md).
#include <cstdint>
#include <string>

#include "common/time.h"
#include "runtime/launch/run_summary.h"

namespace shoal {

// What the process knows beside the run's own figures.
struct LaunchFigures {
  std::string name;
  bool interrupted = false;
  double loss_start = 0, loss_end = 0;
  std::uint64_t wire_bytes = 0;
  Duration elapsed{};
  std::uint64_t targets_per_microbatch = 0;
  std::string saved;  // the folder of --save; empty: nothing was saved
};

std::string summary_json(const LaunchFigures& launch, const RunSummary& run);

}  // namespace shoal
