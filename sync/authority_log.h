#pragma once
// Records of the authority's log. File = records back to back; a record = u32 length of kind + body, u32 its
// complement, u32 CRC-32C of kind + body (all little-endian), u8 kind, body. The complement tells a damaged length from
// a torn tail. Bodies are the packed messages of transport/envelope.h. Append only; pure functions. Thread: any.
#include <variant>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "transport/messages.h"

namespace shoal {

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

// ERRORS: kTooLarge (beyond a limit of transport/limits.h).
Result<Bytes> pack_log_record(const LogRecord& record);

struct LogContent {
  std::vector<LogRecord> records;
  std::size_t valid_bytes = 0;  // what is behind is a torn tail
};
// ERRORS: kCorrupt (a damaged record with bytes of later ones behind it, or one that does not parse).
Result<LogContent> parse_log(ByteView bytes);

}  // namespace shoal
