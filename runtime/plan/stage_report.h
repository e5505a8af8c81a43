#pragma once
// What `shoal plan` says of each stage: its memory item by item, its work and its bytes; into how many stages a model
// must be cut for a given memory; and what peers of a given speed behind given lines make, and what binds them. Pure.
#include <cstdint>
#include <string>

#include "common/program/json_text.h"
#include "runtime/config/config.h"

namespace shoal {

struct StageQuestion {
  double tflops = 0, mbit = 0, rtt_ms = 0;  // of each peer, its line each way, between any two; 0: not given
  std::uint64_t memory_bytes = 0;           // of a peer; 0: not given
  std::uint64_t program_bytes = 0;          // what the program takes without a stage
};

// Nothing where the executor is not torch's. REQUIRES: a checked configuration.
std::string stages_text(const RunConfig& config, const StageQuestion& question);
// The values of "memory", "by_stage" and "speed"; likewise.
void add_stages(const RunConfig& config, const StageQuestion& question, Json& out);

}  // namespace shoal
