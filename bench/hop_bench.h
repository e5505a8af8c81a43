#pragma once
// What hops cost: a swarm of one thread a stage beside `solo` at the same work, alternated in one run of real processes
// on this machine; or, with `net`, the swarm over slow links beside its own rate on loopback.
#include <cstdint>
#include <string>

#include "common/result.h"

namespace shoal {

struct HopBenchOptions {
  int repeats = 5;
  std::uint64_t steps = 4;  // measured, each repeat
  std::uint64_t in_flight = 16;
  std::string codec = "raw", net, python = "python3";
  bool json = false, profile = false;
  std::string keep;  // folder for run files, logs and events; empty: removed
};

Status run_hop_bench(const HopBenchOptions& options);

}  // namespace shoal
