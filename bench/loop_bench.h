#pragma once
// `shoal-bench loop`: for how long the loops of a run's processes are held while a large state is trained, fetched by a
// joiner and left behind. All in this process over loopback: a launching side, a peer, and one that joins later, each
// with a loop, a wire and its other threads of its own; paced executors, so that nothing computes but what is measured.
#include <cstdint>
#include <string>

#include "common/result.h"

namespace shoal {

struct LoopBenchOptions {
  std::uint64_t state_mib = 512;  // of one array; a state has two of them, a peer about eleven
  bool json = false;
};

// The run's file: what it does not name is as for any run.
std::string loop_toml(const LoopBenchOptions& options);

Status run_loop_bench(const LoopBenchOptions& options);

}  // namespace shoal
