#include "authority/authority_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "common/byte_codec.h"
#include "common/crypto/hash.h"
#include "tests/sync/sync_fixtures.h"
#include "transport/limits.h"

namespace shoal {
namespace {

using test::peer_of;
using test::session_of;

std::vector<LogRecord> sample_records() {
  const LogStart start{{"[run]\n", {1, 2, 3}}};
  LogMember member{StageId(2), {session_of(4), peer_of(4), {{"10.0.0.1:7000"}}, true, Version(3)}};
  LogOpen open;
  open.open.stage = StageId(2);
  open.open.round = RoundId(9);
  open.open.members = {session_of(4), session_of(5)};
  LogCommit commit;
  commit.commit.stage = StageId(2);
  commit.commit.round = RoundId(9);
  commit.commit.version = Version(4);
  commit.commit.digest.bytes[1] = 3;
  commit.commit.tag = 0xfedcba9876543210ull;
  commit.commit.secured = {{session_of(4), {1, 2, 3}}, {session_of(5), {}}};
  return {start, member, open, commit, LogRelays{{{"203.0.113.7:443", 9}}}, LogOver{session_of(4), "no sign of life"}};
}

// Each record is synced before the next one is appended.
std::vector<std::uint8_t> bytes_of_records(std::vector<std::size_t>* boundaries = nullptr) {
  std::vector<std::uint8_t> bytes;
  RecordFramer framer(kAuthorityLog);
  for (const LogRecord& record : sample_records()) {
    const Bytes framed = framer.frame(pack_log_record(record).value());
    bytes.insert(bytes.end(), framed.data(), framed.data() + framed.size());
    framer.synced(bytes.size());
    if (boundaries) boundaries->push_back(bytes.size());
  }
  return bytes;
}

TEST(AuthorityLogTest, WhoIsAMemberAtItsEndIsKnown) {
  std::vector<LogRecord> records = sample_records();
  EXPECT_TRUE(members_in(records).empty()) << "the only member was fenced";
  records.push_back(LogMember{StageId(1), {session_of(5), peer_of(5), {}, false, Version(0)}});
  records.push_back(LogMember{StageId(1), {session_of(5), peer_of(5), {}, true, Version(0)}});
  EXPECT_EQ(members_in(records), std::vector<PeerId>{peer_of(5)}) << "once, though its flag changed";
}

// As version 5 wrote it: a list without its relays, which are its last field, and without the reach, which is the last
// of one member's.
TEST(AuthorityLogTest, AnOlderLogIsReadAndItsMembersWereDirect) {
  const Bytes packed = pack_log_record(sample_records()[1]).value();
  std::vector<std::uint8_t> before(packed.data(), packed.data() + packed.size() - 2);
  EXPECT_EQ(before.at(1), 0x94);
  before.at(1) = 0x93;
  const std::array<std::uint8_t, 2> one_of_six = {0x91, 0x96};
  const auto at = std::search(before.begin(), before.end(), one_of_six.begin(), one_of_six.end());
  ASSERT_NE(at, before.end());
  *(at + 1) = 0x95;
  LogFormat format = kAuthorityLog;
  format.version = 5;
  const LogContent content = parse_log(RecordFramer(format).frame(Bytes::from_vector(before))).value();
  const LogMember& member = std::get<LogMember>(content.records.at(0));
  EXPECT_EQ(member.member.whereabouts, (Whereabouts{{"10.0.0.1:7000"}, Reach::kDirect}));
  EXPECT_EQ(member.member.version, Version(3));
  format.version = 4;
  EXPECT_EQ(parse_log(RecordFramer(format).frame(Bytes::from_vector(before))).code(), ErrorCode::kVersion);
}

TEST(AuthorityLogTest, RecordsComeBackAsTheyWere) {
  const LogContent content = parse_log(bytes_of_records()).value();
  ASSERT_EQ(content.records.size(), 6u);
  EXPECT_EQ(std::get<LogStart>(content.records[0]).manifest.body, "[run]\n");
  EXPECT_EQ(std::get<LogStart>(content.records[0]).manifest.signature, (std::vector<std::uint8_t>{1, 2, 3}));
  const LogMember& member = std::get<LogMember>(content.records[1]);
  EXPECT_EQ(member.stage, StageId(2));
  EXPECT_EQ(member.member.session, session_of(4));
  EXPECT_EQ(member.member.whereabouts.addresses, std::vector<std::string>{"10.0.0.1:7000"});
  EXPECT_TRUE(member.member.serving);
  EXPECT_EQ(std::get<LogOpen>(content.records[2]).open.members.size(), 2u);
  const RoundCommit& commit = std::get<LogCommit>(content.records[3]).commit;
  EXPECT_EQ(commit.tag, 0xfedcba9876543210ull);
  EXPECT_EQ(commit.secured[0].serials, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(commit.secured[1].session, session_of(5));
  EXPECT_EQ(std::get<LogRelays>(content.records[4]).relays, (std::vector<RelayPlace>{{"203.0.113.7:443", 9}}));
  EXPECT_EQ(std::get<LogOver>(content.records[5]).reason, "no sign of life");
}

TEST(AuthorityLogTest, ATornTailIsCutAtEveryLength) {
  std::vector<std::size_t> boundaries;
  const std::vector<std::uint8_t> bytes = bytes_of_records(&boundaries);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    std::size_t whole = 0;
    for (const std::size_t boundary : boundaries)
      if (boundary <= size) whole = boundary;
    const Result<LogContent> content = parse_log(ByteView(bytes).first(size));
    ASSERT_TRUE(content.ok()) << size;
    EXPECT_EQ(content->valid_bytes, whole) << size;
  }
}

TEST(AuthorityLogTest, DamageInTheMiddleIsCorruptionAndNotATornTail) {
  std::vector<std::size_t> boundaries;
  const std::vector<std::uint8_t> bytes = bytes_of_records(&boundaries);
  for (std::size_t at = 0; at < boundaries[3]; ++at) {
    std::vector<std::uint8_t> damaged = bytes;
    damaged[at] ^= 0x40;
    const Result<LogContent> content = parse_log(damaged);
    ASSERT_FALSE(content.ok()) << at;
    EXPECT_EQ(content.code(), ErrorCode::kCorrupt);
  }
}

TEST(AuthorityLogTest, ZerosBehindTheLastRecordAreATornTail) {
  std::vector<std::uint8_t> bytes = bytes_of_records();
  const std::size_t size = bytes.size();
  bytes.resize(size + 4096, 0);
  EXPECT_EQ(parse_log(bytes)->valid_bytes, size);
}

TEST(AuthorityLogTest, ARecordThatDoesNotParseIsCorruptAtEveryLength) {
  for (const LogRecord& record : sample_records()) {
    const Bytes payload = pack_log_record(record).value();
    ASSERT_TRUE(parse_log_record(payload).ok());
    for (std::size_t cut = 0; cut < payload.size(); ++cut)
      EXPECT_EQ(parse_log_record(payload.view().first(cut)).code(), ErrorCode::kCorrupt) << cut;
  }
}

// Logs hold packed messages, and those that they hold are packed as they were under protocol 2.
TEST(AuthorityLogTest, ARecordOfAProgramThatSpokeProtocol2IsRead) {
  for (const LogRecord& record : sample_records()) {
    if (std::holds_alternative<LogMember>(record) || std::holds_alternative<LogRelays>(record))
      continue;  // a list without a prologue
    const std::size_t front = 1 + (std::holds_alternative<LogCommit>(record) ? sizeof(LogCommit::paths) : 0);
    const Bytes payload = pack_log_record(record).value();
    for (std::uint16_t version = 1; version <= limits::kProtocolVersion + 1; ++version) {
      std::vector<std::uint8_t> bytes(payload.data(), payload.data() + payload.size());
      put_le<std::uint16_t>(bytes.data() + front + 4, version);
      const ByteView envelope = ByteView(bytes).subspan(front);
      put_le<std::uint32_t>(bytes.data() + front + 12, crc32c(envelope.subspan(16), crc32c(envelope.first(12))));
      EXPECT_EQ(parse_log_record(bytes).ok(), version >= 2 && version <= limits::kProtocolVersion) << version;
    }
  }
}

// Before a round had owners, its opening had a field less.
TEST(AuthorityLogTest, AnOpeningThatLacksWhatCameSinceIsReadOfAnOlderProgramAlone) {
  LogOpen open;
  open.open.round = RoundId(9);
  open.open.members = {session_of(4)};
  const Bytes payload = pack_log_record(open).value();
  std::vector<std::uint8_t> bytes(payload.data(), payload.data() + payload.size());
  ASSERT_EQ(bytes[17], 0x9b) << "eleven fields";
  ASSERT_EQ(bytes.back(), 0x90) << "no owners";
  bytes[17] = 0x9a;
  bytes.pop_back();
  put_le<std::uint32_t>(bytes.data() + 1 + 8, static_cast<std::uint32_t>(bytes.size() - 17));
  for (const std::uint16_t version :
       {std::uint16_t{limits::kProtocolVersion - 1}, std::uint16_t{limits::kProtocolVersion}}) {
    put_le<std::uint16_t>(bytes.data() + 1 + 4, version);
    const ByteView envelope = ByteView(bytes).subspan(1);
    put_le<std::uint32_t>(bytes.data() + 1 + 12, crc32c(envelope.subspan(16), crc32c(envelope.first(12))));
    const Result<LogRecord> record = parse_log_record(bytes);
    ASSERT_EQ(record.ok(), version < limits::kProtocolVersion) << version;
    if (!record.ok()) continue;
    EXPECT_EQ(std::get<LogOpen>(*record).open.round, RoundId(9));
    EXPECT_TRUE(std::get<LogOpen>(*record).open.owners.empty());
  }
}

TEST(AuthorityLogTest, ALogOfAnOlderProgramIsRefusedByNameAndNotCut) {
  // Version 2: u32 length, its complement, u32 CRC-32C, kind, body, and no head of the file.
  const std::vector<std::uint8_t> older{3, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff, 1, 2, 3, 4, 1, 0x91, 0x90};
  for (const std::size_t size : {older.size(), std::size_t{5}}) {
    const Result<LogContent> content = parse_log(ByteView(older).first(size));
    ASSERT_FALSE(content.ok());
    EXPECT_EQ(content.code(), ErrorCode::kVersion);
    EXPECT_NE(content.error().message.find("HINT"), std::string::npos) << content.error().message;
  }
}

}  // namespace
}  // namespace shoal
