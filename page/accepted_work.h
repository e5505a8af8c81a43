#pragma once
// Which microbatches each peer had accepted for good: in a path that won, and named by a round that no stage went back
// from. From the event files of the launching process. Value.
// Bounds: some 150 bytes a microbatch and stage, as the audit.
#include <cstdint>
#include <map>
#include <string>

#include "common/ids.h"
#include "common/result.h"
#include "events/audit/event_lines.h"

namespace shoal {

struct AcceptedWork {
  struct OfStage {
    std::map<std::uint64_t, std::uint64_t> targets;  // by the microbatch's serial
  };
  RunId run;
  std::map<std::uint64_t, std::string> names{};  // by its owner, as it joined last; of those that gave one
  std::map<std::uint64_t, std::map<std::uint16_t, OfStage>> peers;  // by the first 8 bytes of a key, and by stage
};

// ERRORS: sources_in()'s, of EventLines; kInput (no line of a launching process is there, or lines of two runs).
Result<AcceptedWork> accepted_work(const std::string& folder, const ReadProgress& progress = {});

// "0-17,19"
template <class Value>
std::string ranges_text(const std::map<std::uint64_t, Value>& serials) {
  std::string text;
  for (auto at = serials.begin(); at != serials.end();) {
    const std::uint64_t first = at->first;
    std::uint64_t last = first;
    for (++at; at != serials.end() && at->first == last + 1; ++at) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
  }
  return text;
}

}  // namespace shoal
