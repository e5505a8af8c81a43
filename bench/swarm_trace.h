#pragma once
// Which machines are there when, where they are taken away: traces that others published. Pure but for read_trace().
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace shoal {

struct TraceEvent {
  double seconds = 0;  // from the trace's beginning
  std::uint32_t node = 0;
  bool joins = false;  // else it is gone
};

struct SwarmTrace {
  std::string name;
  std::vector<TraceEvent> events;  // in the order of time
  double seconds = 0;              // its length
};

// Either "MS,add|remove,NODE" a line (uclasystem/bamboo, traces/*.csv), or "DATE, TIME, LIVE" a line (its
// traces/gcloud/*.txt), whose lines are sorted, and where `seed` draws who goes. ERRORS: kMalformed (the line), kInput
// (nobody ever joins).
Result<SwarmTrace> parse_trace(std::string name, std::string_view text, std::uint64_t seed);
Result<SwarmTrace> read_trace(const std::string& path, std::uint64_t seed);

}  // namespace shoal
