#pragma once
// What any stranger can learn of a run from its directory, as values, as a table and as JSON (`shoal inspect`).
// Thread: loop only.   Every record shown was verified; what did not pass is counted under `refused`.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "dht/peer_directory.h"
#include "dht/record_table.h"

namespace shoal {

struct InspectOptions {
  RunId run;
  std::uint32_t network = 0;                 // told in the output, so that other tools can be pointed at it; 0: unknown
  Duration budget = 5s;                      // of each of the two questions: the run, then all stages at once
  std::uint16_t stages_if_unknown = 16;      // asked for when no run record is found
  std::function<RecordCounters()> counters;  // of the directory; may be empty
};

struct StageReport {
  StageId stage;
  std::vector<PeerRecord> peers;  // in the order of their ids
  std::size_t serving = 0;        // as the launching process tells it; else by the peers' own records, if not late
  double rate = 0;                // targets per second, by the peers' own records
};

struct RunReport {
  RunId run;
  std::uint32_t network = 0;
  std::optional<RunRecord> record;  // absent: nobody published one that passes
  std::vector<StageReport> stages;
  std::optional<StageId> weakest;  // fewest serving peers, then least rate; absent without stages
  RecordCounters counters;
  WallTime taken;
};

// Calls `done` once, within about twice the budget. REQUIRES: directory and loop live until then.
void inspect_run(PeerDirectory& directory, EventLoop& loop, InspectOptions options,
                 std::function<void(RunReport)> done);

// For people: a line on the run, a table of the peers, a line on its health. Texts of strangers are escaped.
std::string table_of(const RunReport& report);
// One JSON document, "schema":"shoal.inspect/1" (docs/dht.md).
std::string json_of(const RunReport& report);

}  // namespace shoal
