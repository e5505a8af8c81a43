#pragma once
// What any stranger can learn of a run from its directory, as values, as a table and as JSON (`shoal inspect`).
// Thread: loop only.   Every record shown was verified; what did not pass is counted under `refused`.
//
// A signature proves who wrote a record and not that the run knows him: anybody can make keys and sign claims. So who
// serves is what the launching process tells, by the list that the run's key signs (StandingRecord). A peer's own
// record adds to its row what it says of itself, and records of other keys are claims, shown apart and never counted.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/event_loop.h"
#include "dht/peer_directory.h"
#include "dht/record_table.h"

namespace shoal {

inline constexpr Duration kInspectPatience = 5s;  // for each of the two questions, unless another is wanted

struct InspectOptions {
  RunId run;
  std::uint32_t network = 0;                 // told in the output, so that other tools can be pointed at it; 0: unknown
  Duration budget = kInspectPatience;        // of each question: the run and how it stands, then stages and members
  std::uint16_t stages_if_unknown = 16;      // asked for when no run record is found
  std::function<RecordCounters()> counters;  // of the directory; may be empty
};

struct PeerRow {  // a session on the signed list, or one that stood there lately
  MemberRow member;
  std::string name;                  // of its key, 8 hex digits
  std::optional<PeerRecord> record;  // its own; absent: it has none in the DHT, or not of this stage
};

struct StageReport {
  StageId stage;
  std::vector<PeerRow> peers;
  std::vector<PeerRecord> claims;  // of keys that the list does not name there, in the order of their ids
  std::size_t serving = 0;
  std::optional<double> rate{};  // targets per second of those that serve, as they say; none: none of them says one
};

struct RunReport {
  RunId run;
  std::uint32_t network = 0;
  std::optional<RunRecord> record;         // absent: nobody published one that passes
  std::optional<StandingRecord> standing;  // part 0; absent: nobody who holds the run's key tells how it stands
  bool list_whole = false;                 // every member is named in `stages`
  std::vector<StageReport> stages;
  std::optional<StageId> weakest;  // fewest serving peers, then least rate; absent without stages
  std::uint32_t falls = 0;         // of our own DHT node (PeerDirectory::falls)
  RecordCounters counters;
  WallTime taken;

  bool found() const;  // anything at all, also claims
  bool ended() const;
  // The launching process tells nothing any more, since so long.
  std::optional<Duration> silent() const;
};

// What a row is. When the launching process is silent itself, what the peer's own record says of now.
enum class MemberStanding : std::uint8_t {
  kServing,
  kJoining,  // has a stage and not its state yet
  kLeaving,
  kSilent,  // without a beat for seconds
  kGone,    // its session is over
  kServed,  // when the run ended
  kJoined,  // the same, and it had not served yet
};
inline constexpr MemberStanding kMemberStandings[] = {
    MemberStanding::kServing, MemberStanding::kJoining, MemberStanding::kLeaving, MemberStanding::kSilent,
    MemberStanding::kGone,    MemberStanding::kServed,  MemberStanding::kJoined};
std::string_view name_of(MemberStanding state);  // "serving", "joining", ...
MemberStanding state_of(const RunReport& report, const PeerRow& row);
// Seconds since its last beat, and of one that is gone since its session ended.
std::uint64_t quiet_seconds(const RunReport& report, const PeerRow& row);
// Seconds since a record was made that expires then.
double age_of(WallTime expires, WallTime now);
// One that fetches its first state has no version yet.
bool has_version(const PeerRecord& record);
double disk_age(const DiskRecord& disk, WallTime now);  // seconds
// As its listed members say; null: none says that it has one.
const DiskRecord* newest_on_disk(const StageReport& stage);

// Calls `done` once, within about twice the budget. REQUIRES: directory and loop live until then.
void inspect_run(PeerDirectory& directory, EventLoop& loop, InspectOptions options,
                 std::function<void(RunReport)> done);

// For people, in lines of at most kTableColumns: how the run stands, a table of the peers, what is claimed besides.
// Texts of strangers are escaped.
inline constexpr std::size_t kTableColumns = 80;
std::string table_of(const RunReport& report);
// One JSON object, "schema":"shoal.inspect/3" (docs/dht.md), over many lines or on one. What is not known is null.
enum class JsonLines : std::uint8_t { kMany, kOne };
std::string json_of(const RunReport& report, JsonLines lines = JsonLines::kMany);

}  // namespace shoal
