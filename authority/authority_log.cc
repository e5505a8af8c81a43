#include "authority/authority_log.h"

#include <map>
#include <string>

#include "common/byte_codec.h"
#include "transport/envelope.h"

namespace shoal {
namespace {

enum class Kind : std::uint8_t {
  kStart = 1,
  kMember,
  kOver,
  kOpen,
  kCommit,
  kBase,
  kShares,
  kSessions,
  kStage,
  kNamed,
  kAgain,
  kOverAgain,
  kRelays
};

using Body = std::vector<std::uint8_t>;

Result<Body> pack_body(const LogMember& record) {
  MemberList list;
  StageMembers stage;
  stage.stage = record.stage;
  stage.members.push_back(record.member);
  list.stages.push_back(std::move(stage));
  return pack_member_list(list);
}
Result<Body> pack_body(const LogRelays& record) {
  MemberList list;
  list.relays = record.relays;
  return pack_member_list(list);
}
Body body_of(ByteView bytes) { return {bytes.begin(), bytes.end()}; }
// With numbers in front.
Result<Body> pack_message(const Message& message, const ByteWriter& front = {}) {
  SHOAL_ASSIGN(const Bytes packed, pack_envelope(message, std::nullopt));
  Body body = body_of(front.view());
  body.insert(body.end(), packed.data(), packed.data() + packed.size());
  return body;
}
Result<Body> pack_body(const LogStart& start) { return pack_message(start.manifest); }
Result<Body> pack_body(const LogOver& record) { return pack_message(Fenced{record.session, record.reason}); }
Result<Body> pack_body(const LogOpen& record) { return pack_message(record.open); }
Result<Body> pack_body(const LogCommit& record) {
  ByteWriter front;
  front.put(record.paths);
  return pack_message(record.commit, front);
}
Result<Body> pack_body(const LogBase& record) {
  ByteWriter out;
  for (const std::uint64_t number : {record.epoch.value, record.paths, record.rounds, record.taken_back, record.faults})
    out.put(number);
  return body_of(out.view());
}
Result<Body> pack_body(const LogShares& record) {
  ByteWriter out;
  for (const LogShares::Share& share : record.shares) {
    out.put(share.peer_tag);
    out.put(share.stage.value);
    out.put(share.entries);
  }
  return body_of(out.view());
}
Result<Body> pack_body(const LogSessions& record) {
  ByteWriter out;
  for (const LogSessions::Over& over : record.over) {
    out.put(over.session.peer_tag);
    out.put(over.session.incarnation);
    out.put(static_cast<std::uint8_t>(over.left));
  }
  return body_of(out.view());
}
Result<Body> pack_body(const LogStage& record) {
  const Bytes recent = record.recent.pack();
  ByteWriter out;
  out.put(record.stage.value);
  for (const std::uint64_t number : {record.epoch.value, record.round_used.value, record.step_done.value})
    out.put(number);
  out.put(static_cast<std::uint32_t>(recent.size()));
  out.bytes(recent);
  if (!record.last_commit) return body_of(out.view());
  return pack_message(*record.last_commit, out);
}
Result<Body> pack_body(const LogNamed& record) { return pack_message(record.commit); }
Result<Body> pack_body(const LogAgain& record) { return pack_message(record.commit); }
Result<Body> pack_body(const LogOverAgain& record) {
  ByteWriter front;
  front.put(record.stage.value);
  return pack_message(Fenced{record.session, record.reason}, front);
}

Kind kind_of(const LogStart&) { return Kind::kStart; }
Kind kind_of(const LogMember&) { return Kind::kMember; }
Kind kind_of(const LogOver&) { return Kind::kOver; }
Kind kind_of(const LogOpen&) { return Kind::kOpen; }
Kind kind_of(const LogCommit&) { return Kind::kCommit; }
Kind kind_of(const LogBase&) { return Kind::kBase; }
Kind kind_of(const LogShares&) { return Kind::kShares; }
Kind kind_of(const LogSessions&) { return Kind::kSessions; }
Kind kind_of(const LogStage&) { return Kind::kStage; }
Kind kind_of(const LogNamed&) { return Kind::kNamed; }
Kind kind_of(const LogAgain&) { return Kind::kAgain; }
Kind kind_of(const LogOverAgain&) { return Kind::kOverAgain; }
Kind kind_of(const LogRelays&) { return Kind::kRelays; }

Result<LogRecord> parse_member_record(ByteView body) {
  SHOAL_ASSIGN(const MemberList list, parse_member_list(body, true));
  if (list.stages.size() != 1 || list.stages[0].members.size() != 1)
    return make_error(ErrorCode::kMalformed, "a member record without exactly one member");
  return LogRecord(LogMember{list.stages[0].stage, list.stages[0].members[0]});
}

Result<LogRecord> parse_relays(ByteView body) {
  SHOAL_ASSIGN(MemberList list, parse_member_list(body));
  return LogRecord(LogRelays{std::move(list.relays)});
}

Error bad_record() { return make_error(ErrorCode::kMalformed, "its bytes are no record of its kind"); }

// A message of this type and no other.
template <class M>
Result<M> parse_message(ByteView body) {
  // Since then the messages that a log holds have only got fields at their end, so a run goes on under a newer program.
  constexpr std::uint16_t kOldestProtocol = 2;
  SHOAL_ASSIGN(Envelope envelope, parse_envelope(body, kOldestProtocol));
  if (auto* message = std::get_if<M>(&envelope.message)) return std::move(*message);
  return bad_record();
}

Result<LogRecord> parse_commit(ByteReader& in, ByteView body) {
  LogCommit record;
  record.paths = in.get<std::uint64_t>();
  if (in.bad()) return bad_record();
  SHOAL_ASSIGN(record.commit, parse_message<RoundCommit>(body.subspan(8)));
  return LogRecord(std::move(record));
}

Result<LogRecord> parse_over_again(ByteReader& in, ByteView body) {
  LogOverAgain record;
  record.stage = StageId(in.get<std::uint16_t>());
  if (in.bad()) return bad_record();
  SHOAL_ASSIGN(const Fenced over, parse_message<Fenced>(body.subspan(2)));
  record.session = over.session;
  record.reason = over.reason;
  return LogRecord(std::move(record));
}

Result<LogRecord> parse_base(ByteReader& in) {
  LogBase record;
  record.epoch = Epoch(in.get<std::uint64_t>());
  for (std::uint64_t* number : {&record.paths, &record.rounds, &record.taken_back, &record.faults})
    *number = in.get<std::uint64_t>();
  if (!in.whole()) return bad_record();
  return LogRecord(record);
}

Result<LogRecord> parse_shares(ByteReader& in) {
  LogShares record;
  while (!in.bad() && !in.whole()) {
    LogShares::Share share;
    share.peer_tag = in.get<std::uint64_t>();
    share.stage = StageId(in.get<std::uint16_t>());
    share.entries = in.get<std::uint64_t>();
    record.shares.push_back(share);
  }
  if (in.bad()) return bad_record();
  return LogRecord(std::move(record));
}

Result<LogRecord> parse_sessions(ByteReader& in) {
  LogSessions record;
  while (!in.bad() && !in.whole()) {
    LogSessions::Over over;
    over.session.peer_tag = in.get<std::uint64_t>();
    over.session.incarnation = in.get<std::uint64_t>();
    const auto left = in.get<std::uint8_t>();
    if (left > 1) return bad_record();
    over.left = left == 1;
    record.over.push_back(over);
  }
  if (in.bad()) return bad_record();
  return LogRecord(std::move(record));
}

Result<LogRecord> parse_stage(ByteReader& in) {
  LogStage record;
  record.stage = StageId(in.get<std::uint16_t>());
  record.epoch = Epoch(in.get<std::uint64_t>());
  record.round_used = RoundId(in.get<std::uint64_t>());
  record.step_done = StepId(in.get<std::uint64_t>());
  SHOAL_ASSIGN(record.recent, RecentCommits::parse(in.bytes(in.get<std::uint32_t>())));
  if (in.bad()) return bad_record();
  if (!in.whole()) {
    SHOAL_ASSIGN(record.last_commit, parse_message<RoundCommit>(in.rest()));
  }
  return LogRecord(std::move(record));
}

Result<LogRecord> parse_record(Kind kind, ByteView body) {
  ByteReader in(body);
  switch (kind) {
    case Kind::kStart: {
      SHOAL_ASSIGN(Manifest manifest, parse_message<Manifest>(body));
      return LogRecord(LogStart{std::move(manifest)});
    }
    case Kind::kMember:
      return parse_member_record(body);
    case Kind::kOver: {
      SHOAL_ASSIGN(const Fenced over, parse_message<Fenced>(body));
      return LogRecord(LogOver{over.session, over.reason});
    }
    case Kind::kOpen: {
      SHOAL_ASSIGN(RoundOpen open, parse_message<RoundOpen>(body));
      return LogRecord(LogOpen{std::move(open)});
    }
    case Kind::kNamed: {
      SHOAL_ASSIGN(RoundCommit commit, parse_message<RoundCommit>(body));
      return LogRecord(LogNamed{std::move(commit)});
    }
    case Kind::kAgain: {
      SHOAL_ASSIGN(RoundCommit commit, parse_message<RoundCommit>(body));
      return LogRecord(LogAgain{std::move(commit)});
    }
    case Kind::kCommit:
      return parse_commit(in, body);
    case Kind::kBase:
      return parse_base(in);
    case Kind::kShares:
      return parse_shares(in);
    case Kind::kSessions:
      return parse_sessions(in);
    case Kind::kStage:
      return parse_stage(in);
    case Kind::kOverAgain:
      return parse_over_again(in, body);
    case Kind::kRelays:
      return parse_relays(body);
  }
  return make_error(ErrorCode::kMalformed, "an unknown kind of record");
}

}  // namespace

Result<Bytes> pack_log_record(const LogRecord& record) {
  SHOAL_ASSIGN(const Body body, std::visit([](const auto& r) { return pack_body(r); }, record));
  Body bytes{static_cast<std::uint8_t>(std::visit([](const auto& r) { return kind_of(r); }, record))};
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

Error log_contradicts(const std::string& what) {
  return make_error(ErrorCode::kCorrupt, "the authority's log " + what);
}

LogReach reach_of(const std::vector<LogRecord>& records) {
  LogReach reach;
  const auto note = [&](const RoundCommit& commit, std::uint64_t paths) {
    Version& version = reach.versions[commit.stage];
    version = std::max(version, commit.version);
    reach.paths = std::max(reach.paths, paths);
  };
  for (const LogRecord& record : records) {
    if (const auto* commit = std::get_if<LogCommit>(&record)) note(commit->commit, commit->paths);
    if (const auto* base = std::get_if<LogBase>(&record)) reach.paths = base->paths;
    if (const auto* stage = std::get_if<LogStage>(&record); stage && stage->last_commit)
      note(*stage->last_commit, reach.paths);
  }
  return reach;
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
