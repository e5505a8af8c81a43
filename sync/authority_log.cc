#include "sync/authority_log.h"

#include <array>
#include <string>

#include "sync/authority.h"
#include "transport/envelope.h"
#include "transport/little_endian.h"

namespace shoal {
namespace {

constexpr std::size_t kHeadBytes = 12;
constexpr std::size_t kRecordBytesMax = 4u << 20;

enum class Kind : std::uint8_t { kStart = 1, kMember = 2, kOver = 3, kOpen = 4, kCommit = 5 };

Result<std::vector<std::uint8_t>> pack_body(const LogMember& record) {
  MemberList list;
  StageMembers stage;
  stage.stage = record.stage;
  stage.members.push_back(record.member);
  list.stages.push_back(std::move(stage));
  return pack_member_list(list);
}
Result<std::vector<std::uint8_t>> pack_message(const Message& message) {
  SHOAL_ASSIGN(const Bytes packed, pack_envelope(message, std::nullopt));
  return std::vector<std::uint8_t>(packed.data(), packed.data() + packed.size());
}
Result<std::vector<std::uint8_t>> pack_body(const LogStart& start) { return pack_message(start.manifest); }
Result<std::vector<std::uint8_t>> pack_body(const LogOver& record) {
  return pack_message(Fenced{record.session, record.reason});
}
Result<std::vector<std::uint8_t>> pack_body(const LogOpen& record) { return pack_message(record.open); }
Result<std::vector<std::uint8_t>> pack_body(const LogCommit& record) { return pack_message(record.commit); }

Kind kind_of(const LogStart&) { return Kind::kStart; }
Kind kind_of(const LogMember&) { return Kind::kMember; }
Kind kind_of(const LogOver&) { return Kind::kOver; }
Kind kind_of(const LogOpen&) { return Kind::kOpen; }
Kind kind_of(const LogCommit&) { return Kind::kCommit; }

Error corrupt(std::size_t at, const std::string& why) {
  return make_error(ErrorCode::kCorrupt, "the authority's log is damaged at byte " + std::to_string(at) + ": " + why);
}

Result<LogRecord> parse_member_record(ByteView body) {
  SHOAL_ASSIGN(const MemberList list, parse_member_list(body));
  if (list.stages.size() != 1 || list.stages[0].members.size() != 1)
    return make_error(ErrorCode::kMalformed, "a member record without exactly one member");
  return LogRecord(LogMember{list.stages[0].stage, list.stages[0].members[0]});
}

Result<LogRecord> parse_record(Kind kind, ByteView body) {
  if (kind == Kind::kMember) return parse_member_record(body);
  SHOAL_ASSIGN(const Envelope envelope, parse_envelope(body));
  if (const auto* manifest = std::get_if<Manifest>(&envelope.message); manifest && kind == Kind::kStart)
    return LogRecord(LogStart{*manifest});
  if (const auto* over = std::get_if<Fenced>(&envelope.message); over && kind == Kind::kOver)
    return LogRecord(LogOver{over->session, over->reason});
  if (const auto* open = std::get_if<RoundOpen>(&envelope.message); open && kind == Kind::kOpen)
    return LogRecord(LogOpen{*open});
  if (const auto* commit = std::get_if<RoundCommit>(&envelope.message); commit && kind == Kind::kCommit)
    return LogRecord(LogCommit{*commit});
  return make_error(ErrorCode::kMalformed, "an unknown kind of record");
}

}  // namespace

Result<Bytes> pack_log_record(const LogRecord& record) {
  SHOAL_ASSIGN(const std::vector<std::uint8_t> body, std::visit([](const auto& r) { return pack_body(r); }, record));
  std::vector<std::uint8_t> bytes(kHeadBytes);
  bytes.push_back(static_cast<std::uint8_t>(std::visit([](const auto& r) { return kind_of(r); }, record)));
  bytes.insert(bytes.end(), body.begin(), body.end());
  put_u32(bytes.data(), static_cast<std::uint32_t>(bytes.size() - kHeadBytes));
  put_u32(bytes.data() + 4, ~static_cast<std::uint32_t>(bytes.size() - kHeadBytes));
  put_u32(bytes.data() + 8, crc32c(ByteView(bytes).subspan(kHeadBytes)));
  return Bytes::from_vector(std::move(bytes));
}

Result<LogContent> parse_log(ByteView bytes) {
  LogContent content;
  std::size_t at = 0;
  while (bytes.size() - at >= kHeadBytes + 1) {
    const std::uint32_t length = get_u32(bytes, at), crc = get_u32(bytes, at + 8);
    const std::size_t room = bytes.size() - at - kHeadBytes;
    if (length == 0 || length > kRecordBytesMax || get_u32(bytes, at + 4) != ~length) {
      // A torn tail may be zeros where the length was never written.
      for (std::size_t i = at; i < bytes.size(); ++i)
        if (bytes[i] != 0) return corrupt(at, "an impossible length of a record");
      break;
    }
    if (length > room) break;
    const ByteView payload = bytes.subspan(at + kHeadBytes, length);
    if (crc32c(payload) != crc) {
      if (length == room) break;
      return corrupt(at, "a wrong checksum with more records behind it");
    }
    Result<LogRecord> record = parse_record(static_cast<Kind>(payload[0]), payload.subspan(1));
    if (!record.ok()) return corrupt(at, record.error().message);
    content.records.push_back(std::move(*record));
    at += kHeadBytes + length;
    content.valid_bytes = at;
  }
  return content;
}

Result<std::size_t> authority_log_valid_bytes(ByteView history) {
  SHOAL_ASSIGN(const LogContent content, parse_log(history));
  return content.valid_bytes;
}

}  // namespace shoal
