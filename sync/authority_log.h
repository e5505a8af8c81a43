#pragma once
// Records of the authority's log: u8 kind, body. Bodies are the packed messages of transport/envelope.h; framing and
// torn tails are common/record_log.h's. Append only; pure functions but for open_authority_log. Thread: any.
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/bytes.h"
#include "common/record_log.h"
#include "common/result.h"
#include "transport/messages.h"

namespace shoal {

inline constexpr LogFormat kAuthorityLog{
    .name = "authority's log", .kind = 2, .version = 4, .record_bytes_max = 4u << 20};

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
struct LogCommit {
  RoundCommit commit;
};
using LogRecord = std::variant<LogStart, LogMember, LogOver, LogOpen, LogCommit>;

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

// Whoever the log knows as a member at its end. A resumed process keeps connections of theirs before it has a list.
std::vector<PeerId> members_in(const std::vector<LogRecord>& records);

// A log and what was read from it.
struct AuthorityLog {
  std::unique_ptr<RecordLog> file;
  std::vector<LogRecord> records;
};
// ERRORS: those of RecordLog::open, kCorrupt (a record that does not parse).
Result<AuthorityLog> open_authority_log(Storage& storage, const std::string& path);

}  // namespace shoal
