#pragma once
// `shoal-bench relay`: what a relay carries of its rate, how evenly, and what that costs. Pairs that it joined push as
// fast as they can through one relay of this process, over loopback: below its cap, then without one, and then the same
// pairs over plain TCP, which is the limit here. Thread: one of its own an end, and the caller's, which blocks.
#include <cstddef>
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

struct RelayBenchOptions {
  std::size_t pairs = 8;
  std::string rate = "100mbit";  // of the capped phase
  double seconds = 10;           // of each phase, behind a second that is not measured
  bool json = false;
};

// ERRORS: kInput (the rate), kUnreachable, kIo.
Status run_relay_bench(const RelayBenchOptions& options);

// Jain, Chiu and Hawe 1984: 1 where all have the same, 1/n where one has all.
double jain_index(const std::vector<double>& shares);

}  // namespace shoal
