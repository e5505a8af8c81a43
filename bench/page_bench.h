#pragma once
// `shoal-bench page`: what the page costs the launching process. A run is told in virtual time, by the events that such
// a process writes, to the page's own model, server and metrics: for a minute with viewers that read along, then for as
// long as asked. Its file is then replayed. Nothing is trained.
#include <cstdint>

#include "common/result.h"

namespace shoal {

struct PageBenchOptions {
  std::uint32_t peers = 64;
  std::uint16_t stages = 4;
  double microbatches_per_s = 20;
  double hours = 24;
  std::uint32_t viewers = 3;
  std::uint64_t replayed = 100'000;  // events of a file
  bool json = false;
};

Status run_page_bench(const PageBenchOptions& options);

}  // namespace shoal
