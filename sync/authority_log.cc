#include "sync/authority_log.h"

#include <map>
#include <string>

#include "transport/envelope.h"

namespace shoal {
namespace {

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

Result<LogRecord> parse_member_record(ByteView body) {
  SHOAL_ASSIGN(const MemberList list, parse_member_list(body));
  if (list.stages.size() != 1 || list.stages[0].members.size() != 1)
    return make_error(ErrorCode::kMalformed, "a member record without exactly one member");
  return LogRecord(LogMember{list.stages[0].stage, list.stages[0].members[0]});
}

Result<LogRecord> parse_record(Kind kind, ByteView body) {
  // Since then no message that a log holds has changed, so a run goes on under a newer program.
  constexpr std::uint16_t kOldestProtocol = 2;
  if (kind == Kind::kMember) return parse_member_record(body);
  SHOAL_ASSIGN(const Envelope envelope, parse_envelope(body, kOldestProtocol));
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
  std::vector<std::uint8_t> bytes{
      static_cast<std::uint8_t>(std::visit([](const auto& r) { return kind_of(r); }, record))};
  bytes.insert(bytes.end(), body.begin(), body.end());
  return Bytes::from_vector(std::move(bytes));
}

Result<LogRecord> parse_log_record(ByteView payload) {
  if (payload.empty()) return make_error(ErrorCode::kCorrupt, "an empty record of the authority's log");
  Result<LogRecord> record = parse_record(static_cast<Kind>(payload[0]), payload.subspan(1));
  if (record.ok()) return record;
  return make_error(ErrorCode::kCorrupt, "a record of the authority's log does not parse: " + record.error().message);
}

namespace {
// Adds what it reads to `records`.
RecordReader reader_into(std::vector<LogRecord>& records) {
  return [&records](ByteView payload) -> Status {
    SHOAL_ASSIGN(LogRecord record, parse_log_record(payload));
    records.push_back(std::move(record));
    return {};
  };
}
}  // namespace

Result<LogContent> parse_log(ByteView bytes) {
  LogContent content;
  SHOAL_ASSIGN(content.valid_bytes, read_record_log(bytes, kAuthorityLog, reader_into(content.records)));
  return content;
}

std::vector<PeerId> members_in(const std::vector<LogRecord>& records) {
  std::map<Session, PeerId> members;
  for (const LogRecord& record : records) {
    if (const auto* member = std::get_if<LogMember>(&record)) members[member->member.session] = member->member.peer;
    if (const auto* over = std::get_if<LogOver>(&record)) members.erase(over->session);
  }
  std::vector<PeerId> peers;
  for (const auto& [session, peer] : members) peers.push_back(peer);
  return peers;
}

Result<AuthorityLog> open_authority_log(Storage& storage, const std::string& path) {
  AuthorityLog log;
  SHOAL_ASSIGN(log.file, RecordLog::open(storage, path, kAuthorityLog, reader_into(log.records)));
  return log;
}

}  // namespace shoal
