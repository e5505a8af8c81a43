#pragma once
// Records of the authority's log: u8 kind, body. Bodies are numbers (common/byte_codec.h) and packed messages of
// transport/envelope.h; framing and torn tails are common/record_log.h's. Append only; pure functions but for
// open_authority_log. Thread: any.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "authority/recent_commits.h"
#include "common/bytes.h"
#include "common/record_log.h"
#include "common/result.h"
#include "transport/messages.h"

namespace shoal {

inline constexpr LogFormat kAuthorityLog{
    .name = "authority's log", .kind = 2, .version = 7, .record_bytes_max = 16u << 20, .oldest = 5};

struct LogStart {
  Manifest manifest;
};  // first record: whose log it is, and of which run file
struct LogMember {
  StageId stage;
  Member member;
};  // added, or its serving flag changed
struct LogOver {
  Session session;
  std::string reason;
};  // fenced, left, replaced
struct LogOpen {
  RoundOpen open;
};
struct LogRelays {
  std::vector<RelayPlace> relays;
};  // all that the list names from now on
struct LogCommit {
  RoundCommit commit;
  std::uint64_t paths = 0;  // so many microbatches were durable in the trainer's log by then
};

// ---- of a compacted log: behind its LogStart, in this order; its members, relays and openings are as above ----
struct LogBase {
  Epoch epoch;
  std::uint64_t paths = 0;                               // as the newest commit said
  std::uint64_t rounds = 0, taken_back = 0, faults = 0;  // RoundTally
};
struct LogShares {
  struct Share {
    std::uint64_t peer_tag = 0;
    StageId stage;
    std::uint64_t entries = 0;
  };
  std::vector<Share> shares;  // of RoundTally; in several records where they are many
};
struct LogSessions {
  struct Over {
    Session session;
    bool left = false;  // else fenced
  };
  std::vector<Over> over;
};
struct LogStage {
  StageId stage;
  Epoch epoch;
  RoundId round_used;
  StepId step_done;
  RecentCommits recent;
  std::optional<RoundCommit> last_commit;
};
struct LogNamed {
  RoundCommit commit;  // the newest that names a member, with its own entries only
};
// What may not have reached others before the process ended, and is told again.
struct LogAgain {
  RoundCommit commit;  // one that goes back: `secured` and `tag` are what that takes
};
struct LogOverAgain {
  StageId stage;
  Session session;
  std::string reason;
};

using LogRecord = std::variant<LogStart, LogMember, LogOver, LogOpen, LogCommit, LogBase, LogShares, LogSessions,
                               LogStage, LogNamed, LogAgain, LogOverAgain, LogRelays>;

// The payload. ERRORS: kTooLarge (beyond a limit of transport/limits.h).
Result<Bytes> pack_log_record(const LogRecord& record);
// ERRORS: kCorrupt (it does not parse).
Result<LogRecord> parse_log_record(ByteView payload);

struct LogContent {
  std::vector<LogRecord> records;
  std::size_t valid_bytes = 0;  // what is behind is a torn tail
};
// ERRORS: those of read_record_log, kCorrupt (a record that does not parse).
Result<LogContent> parse_log(ByteView bytes);

// kCorrupt: "the authority's log WHAT".
Error log_contradicts(const std::string& what);

// How far the log has come, by which an older copy of it or of its partner is known: the newest version of each stage,
// and the microbatches that the trainer's log had when the newest round was committed.
struct LogReach {
  std::map<StageId, Version> versions;
  std::uint64_t paths = 0;
};
LogReach reach_of(const std::vector<LogRecord>& records);

// The sessions that the log knows as members at its end. A resumed process keeps connections of theirs before it has a
// list.
std::vector<PeerId> members_in(const std::vector<LogRecord>& records);

// A log and what was read from it.
struct AuthorityLog {
  std::unique_ptr<RecordLog> file;
  std::vector<LogRecord> records;
};
// ERRORS: those of RecordLog::open, kCorrupt (a record that does not parse).
Result<AuthorityLog> open_authority_log(Storage& storage, const std::string& path);

}  // namespace shoal
