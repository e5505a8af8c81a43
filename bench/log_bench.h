#pragma once
// `shoal-bench log`: what the logs of a long run cost the process that resumes it. Feeds the trainer's book and the
// authority with the paths, rounds and changing members of a run of so many microbatches, on a real disk, and then
// opens both again as `launch --resume` does. Nothing is trained and nothing is sent.
#include <cstdint>
#include <string>

#include "common/result.h"

namespace shoal {

struct LogBenchOptions {
  std::uint64_t microbatches = 10'000'000;
  std::uint16_t stages = 4;
  std::uint64_t round = 256;    // microbatches of a stage that one round secures
  std::uint64_t session = 100;  // rounds of a stage after which one of its members is replaced
  std::string folder;           // empty: one of its own below the temporary folder, which is removed
  bool json = false;
};

Status run_log_bench(const LogBenchOptions& options);

}  // namespace shoal
