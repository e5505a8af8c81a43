#include "dht/record.h"

#include <gtest/gtest.h>

#include <sstream>

#include "common/rng.h"
#include "tests/dht/records.h"

namespace shoal {
namespace {

class RecordTest : public ::testing::Test {
 protected:
  const KeyPair run_ = key_of_number(1);
  const KeyPair peer_ = key_of_number(2);
  const KeyPair stranger_ = key_of_number(3);
  const PeerRecord record_ = peer_record(run_, peer_, 3, 77, kTestWall);
  const std::string text_ = packed(record_, peer_);
};

TEST_F(RecordTest, APeersRecordComesBackAsItWas) {
  const auto back = parse_peer_record(text_, run_of(run_));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->run, record_.run);
  EXPECT_EQ(back->peer, record_.peer);
  EXPECT_EQ(back->session, record_.session);
  EXPECT_EQ(back->stage, record_.stage);
  EXPECT_EQ(back->whereabouts.addresses, record_.whereabouts.addresses);
  EXPECT_DOUBLE_EQ(back->figures.rate, record_.figures.rate);
  EXPECT_DOUBLE_EQ(back->figures.queue_seconds, record_.figures.queue_seconds);
  EXPECT_EQ(back->version, record_.version);
  EXPECT_TRUE(back->serving);
  EXPECT_EQ(back->sequence, 77u);
  EXPECT_EQ(back->expires, record_.expires);
}

TEST_F(RecordTest, ARunsRecordComesBackAsItWas) {
  const RunRecord record = run_record(run_, 5, kTestWall);
  const auto back = parse_run_record(packed(record, run_), run_of(run_));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->name, "tide pool");
  EXPECT_EQ(back->stages, 4);
  EXPECT_EQ(back->manifest, record.manifest);
  EXPECT_EQ(back->whereabouts.addresses, record.whereabouts.addresses);
  EXPECT_EQ(back->sequence, 5u);
  EXPECT_EQ(back->expires, record.expires);
}

TEST_F(RecordTest, TheEndOfARunComesBack) {
  RunRecord record = run_record(run_, 5, kTestWall);
  record.ended = "all tokens are committed";
  EXPECT_EQ(parse_run_record(packed(record, run_), run_of(run_))->ended, record.ended);
}

StandingRecord standing_record(const KeyPair& run) {
  StandingRecord record;
  record.run = run_of(run);
  record.state = RunState::kParked;
  record.since = kTestWall - 7s;
  record.stage = StageId(2);
  record.stranded = true;
  record.last = {"ab12cd34", "00ff00ff"};
  record.figures.step = 12;
  record.figures.loss = 3.4561;
  record.figures.run_targets = 1'310'000;
  record.figures.end_targets = 5'000'000;
  record.figures.rate = 25100.5;
  record.figures.falls = 3;
  record.sequence = 77;
  record.expires = kTestWall + kRecordTtl;
  return record;
}

TEST_F(RecordTest, HowARunStandsComesBack) {
  StandingRecord record = standing_record(run_);
  record.peers = {{0x0123456789abcdefull, StageId(3), MemberRow::Place::kLeaving, 258}};
  const auto parts = pack_standing(record, run_);
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  ASSERT_EQ(parts->size(), 1u);
  const auto any = parse_any_record(parts->front());
  ASSERT_TRUE(any.ok()) << any.error().message;
  EXPECT_EQ(key_of(*any), "shoal/1/" + hex_of(run_of(run_)) + "/standing/0");
  EXPECT_EQ(signer_of(*any), run_.id());
  const auto& back = std::get<StandingRecord>(*any);
  EXPECT_EQ(back.state, RunState::kParked);
  EXPECT_EQ(back.since, record.since);
  EXPECT_EQ(back.stage, StageId(2));
  EXPECT_TRUE(back.stranded);
  EXPECT_EQ(back.last, record.last);
  EXPECT_EQ(back.figures.step, 12u);
  EXPECT_DOUBLE_EQ(back.figures.loss.value_or(0), 3.4561);
  EXPECT_EQ(back.figures.run_targets, 1'310'000u);
  EXPECT_EQ(back.figures.end_targets, 5'000'000u);
  EXPECT_DOUBLE_EQ(back.figures.rate.value_or(0), 25100.5);
  EXPECT_EQ(back.figures.falls, 3u);
  EXPECT_EQ(back.unnamed, 0u);
  EXPECT_EQ(back.sequence, 77u);
  ASSERT_EQ(back.peers.size(), 1u);
  EXPECT_EQ(back.peers[0].tag, 0x0123456789abcdefull);
  EXPECT_EQ(back.peers[0].stage, StageId(3));
  EXPECT_EQ(back.peers[0].place, MemberRow::Place::kLeaving);
  EXPECT_EQ(back.peers[0].quiet_s, 258);
}

// With the longest numbers, and more members than all parts have room for.
TEST_F(RecordTest, TheMembersOfALargeRunComeInPartsAndWhoIsNotNamedIsCounted) {
  StandingRecord record = standing_record(run_);
  record.last.assign(kRecordLastMax, "ab12cd34");
  record.stage = StageId(255);
  record.figures.step = record.figures.run_targets = record.figures.end_targets = UINT64_MAX;
  record.sequence = 1'700'000'000'000;
  record.figures.loss = 1e6;
  record.figures.rate = 1e15;
  record.figures.falls = UINT32_MAX;
  for (const std::size_t members : {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{5000}}) {
    record.peers.assign(members, MemberRow{});
    for (std::size_t i = 0; i < members; ++i) record.peers[i].tag = i + 1;
    const auto parts = pack_standing(record, run_);
    ASSERT_TRUE(parts.ok()) << parts.error().message;
    EXPECT_LE(parts->size(), kStandingPartsMax);
    std::uint64_t named = 0;
    std::uint32_t unnamed = 0;
    for (std::size_t part = 0; part < parts->size(); ++part) {
      EXPECT_LE((*parts)[part].size(), kRecordBytesMax);
      const auto any = parse_any_record((*parts)[part]);
      ASSERT_TRUE(any.ok()) << any.error().message;
      const auto& back = std::get<StandingRecord>(*any);
      EXPECT_EQ(back.part, part);
      EXPECT_EQ(back.parts, parts->size());
      for (const MemberRow& peer : back.peers) EXPECT_EQ(peer.tag, ++named);
      if (part == 0) unnamed = back.unnamed;
    }
    EXPECT_EQ(named + unnamed, members);
    EXPECT_EQ(unnamed > 0, members > 40);
  }
  EXPECT_EQ(pack_standing(record, peer_).code(), ErrorCode::kInput) << "not the run's key";
}

// What is for people gives way to where others can dial.
TEST_F(RecordTest, APeersFiguresComeBackAndGiveWayToAnAddress) {
  PeerRecord record = record_;
  record.figures.device = "cuda:0";
  record.figures.memory_bytes = 3ull << 30;
  record.figures.rtt_ms = 35.2;
  record.figures.sent_rate = 1.25e6, record.figures.got_rate = 2.5e6;
  record.figures.falls = 12;
  record.on_disk = {Version(17), record.expires - kRecordTtl - 100s};
  auto back = parse_peer_record(packed(record, peer_), record.run);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->figures.device, "cuda:0");
  EXPECT_EQ(back->figures.memory_bytes, record.figures.memory_bytes);
  EXPECT_DOUBLE_EQ(back->figures.rtt_ms, 35.2);
  EXPECT_EQ(back->figures.sent_rate, 1.25e6);
  EXPECT_EQ(back->figures.got_rate, 2.5e6);
  EXPECT_EQ(back->figures.falls, 12u);
  ASSERT_TRUE(back->on_disk);
  EXPECT_EQ(back->on_disk->version, Version(17));
  EXPECT_EQ(back->on_disk->saved, record.on_disk->saved);
  record.figures.activation_codec = record.figures.gradient_codec = "int8";
  back = parse_peer_record(packed(record, peer_), record.run);
  EXPECT_EQ(back->figures.device + back->figures.activation_codec, "cuda:0") << "codecs give way first";
  record.whereabouts.addresses.resize(1), record.figures.falls = 0;
  back = parse_peer_record(packed(record, peer_), record.run);
  EXPECT_EQ(back->figures.activation_codec + " " + back->figures.gradient_codec, "int8 int8");
  record.whereabouts.addresses = {"[2001:db8:1111:2222:3333:4444:5555:6666]:65535", "198.51.100.7:7741",
                                  "198.51.100.8:7741"};
  back = parse_peer_record(packed(record, peer_), record.run);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->whereabouts.addresses, record.whereabouts.addresses);
  EXPECT_EQ(back->figures.device, "");
}

// These bytes stand in docs/dht.md: whoever changes the form changes it for every process that is out there.
TEST_F(RecordTest, TheBytesAreThoseOfTheDocumentedExample) {
  EXPECT_EQ(text_,
            "{\"v\":1,\"run\":\"8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c\","
            "\"peer\":\"8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394\",\"inc\":"
            "\"0123456789abcdef\",\"stage\":3,"
            "\"addr\":[\"198.51.100.7:7741\",\"[2001:db8::7]:7741\"],\"rate\":5120.5,\"queue\":0.31,\"ver\":18,\"on\":"
            "true,\"seq\":77,"
            "\"exp\":1700000060,\"sig\":\"zmNWAT1BkLp8fRxnrhweIrKGoOKWm4GUnJ05sMOyUxWzSms_ZMU1nH5qJLHr9NccJy-"
            "JYdhjQ6xYVpmEiD58DQ\"}");
}

TEST_F(RecordTest, IsOneWordOfPrintableCharactersWithinTheLimit) {
  for (const std::string& text : {text_, packed(run_record(run_, 5, kTestWall), run_)}) {
    EXPECT_LE(text.size(), kRecordBytesMax);
    for (char c : text) EXPECT_TRUE(c > 0x20 && c < 0x7f) << static_cast<int>(c);
  }
}

TEST_F(RecordTest, TheLongestNumbersAndThreeAddressesOfIpv4Fit) {
  PeerRecord record = record_;
  record.stage = StageId(255);
  record.whereabouts.addresses = {"198.151.100.117:65535", "198.151.100.118:65535", "198.151.100.119:65535"};
  record.figures.rate = 12345678.9;
  record.figures.queue_seconds = 123.456;
  record.version = Version(1234567890);
  record.serving = false;
  record.sequence = 1'700'000'000'000;
  const auto back = parse_peer_record(packed(record, peer_), record.run);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->whereabouts.addresses, record.whereabouts.addresses);
}

TEST_F(RecordTest, AddressesThatDoNotFitAreLeftOutFromTheEnd) {
  PeerRecord record = record_;
  const std::string longest = "[2001:0db8:1111:2222:3333:4444:5555:6666]:65535";
  record.whereabouts.addresses = {longest, longest, longest};
  record.version = Version(UINT64_MAX);
  record.sequence = UINT64_MAX;
  const std::string text = packed(record, peer_);
  EXPECT_LE(text.size(), kRecordBytesMax);
  const auto back = parse_peer_record(text, record.run);
  ASSERT_TRUE(back.ok());
  ASSERT_FALSE(back->whereabouts.addresses.empty());
  EXPECT_LT(back->whereabouts.addresses.size(), 3u);
  EXPECT_EQ(back->whereabouts.addresses.front(), longest);
}

TEST_F(RecordTest, PackingRefusesWhatIsNotOurs) {
  EXPECT_EQ(pack_record(record_, stranger_).code(), ErrorCode::kInput);
  EXPECT_EQ(pack_record(run_record(run_, 1, kTestWall), peer_).code(), ErrorCode::kInput);
  PeerRecord record = record_;
  record.whereabouts.addresses = {"0.0.0.0:7741"};
  EXPECT_EQ(pack_record(record, peer_).code(), ErrorCode::kInput);
  record = record_;
  record.figures.rate = std::nan("");
  EXPECT_EQ(pack_record(record, peer_).code(), ErrorCode::kInput);
  RunRecord run = run_record(run_, 1, kTestWall);
  run.name = "\xff\xfe";
  EXPECT_EQ(pack_record(run, run_).code(), ErrorCode::kInput);
}

TEST_F(RecordTest, EveryTruncationIsRefused) {
  for (std::size_t size = 0; size < text_.size(); ++size) {
    const auto result = parse_peer_record(text_.substr(0, size), record_.run);
    ASSERT_FALSE(result.ok()) << size;
    EXPECT_EQ(result.code(), ErrorCode::kMalformed) << size;
  }
}

TEST_F(RecordTest, EverySingleBitIsCovered) {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = text_;
      text[i] = static_cast<char>(text[i] ^ (1 << bit));
      EXPECT_FALSE(parse_any_record(text).ok()) << "byte " << i << " bit " << bit;
    }
  }
}

TEST_F(RecordTest, SeededMutationsNeverPass) {
  Rng rng(20260101);
  const std::string other = packed(run_record(run_, 9, kTestWall), run_);
  for (int round = 0; round < 20000; ++round) {
    std::string text = rng.chance(0.5) ? text_ : other;
    const std::string original = text;
    for (std::uint64_t edits = 1 + rng.below(4); edits > 0; --edits) {
      const std::size_t at = rng.below(text.size());
      switch (rng.below(4)) {
        case 0:
          text[at] = static_cast<char>(rng.below(256));
          break;
        case 1:
          text.erase(at, 1 + rng.below(8));
          break;
        case 2:
          text.insert(at, 1, "{}[],:\"0e-\\u"[rng.below(12)]);
          break;
        default:
          text.insert(at, text.substr(rng.below(text.size()), rng.below(40)));
          break;
      }
      if (text.empty()) text = "{";
    }
    if (text == original) continue;
    EXPECT_FALSE(parse_any_record(text).ok()) << text;
  }
}

TEST_F(RecordTest, AnotherKeysSignatureIsRefusedAsCorrupt) {
  PeerRecord forged = record_;
  forged.peer = stranger_.id();
  std::string text = packed(forged, stranger_);
  const std::string from = hex_of(stranger_.id()), to = hex_of(peer_.id());
  text.replace(text.find(from), from.size(), to);
  EXPECT_EQ(parse_peer_record(text, record_.run).code(), ErrorCode::kCorrupt);
}

TEST_F(RecordTest, AnotherRunIsRefusedAsForeign) {
  EXPECT_EQ(parse_peer_record(text_, run_of(stranger_)).code(), ErrorCode::kForeign);
  EXPECT_EQ(parse_run_record(packed(run_record(run_, 1, kTestWall), run_), run_of(stranger_)).code(),
            ErrorCode::kForeign);
}

TEST_F(RecordTest, OneKindDoesNotPassForTheOther) {
  EXPECT_EQ(parse_run_record(text_, record_.run).code(), ErrorCode::kMalformed);
  EXPECT_EQ(parse_peer_record(packed(run_record(run_, 1, kTestWall), run_), record_.run).code(), ErrorCode::kMalformed);
}

TEST_F(RecordTest, OversizeIsRefusedBeforeItIsLookedAt) {
  EXPECT_EQ(parse_any_record(std::string(kRecordBytesMax + 1, '{')).code(), ErrorCode::kTooLarge);
  EXPECT_EQ(parse_any_record(std::string(1 << 20, '[')).code(), ErrorCode::kTooLarge);
}

// Signs any body, as a hostile peer with a key of its own can.
std::string signed_text(const std::string& open_body, const KeyPair& key) {
  const std::string message = std::string(kRecordDomain) + open_body;
  const Signature signature = key.sign({reinterpret_cast<const std::uint8_t*>(message.data()), message.size()});
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string sig;
  std::uint32_t bits = 0;
  int held = 0;
  for (std::uint8_t byte : signature) {
    bits = bits << 8 | byte;
    for (held += 8; held >= 6;) sig += kAlphabet[bits >> (held -= 6) & 63];
  }
  if (held > 0) sig += kAlphabet[bits << (6 - held) & 63];
  return open_body + ",\"sig\":\"" + sig + "\"}";
}

TEST_F(RecordTest, WellSignedNonsenseIsMalformed) {
  const std::string good = text_.substr(0, text_.find(",\"sig\""));
  ASSERT_TRUE(parse_any_record(signed_text(good, peer_)).ok()) << "the test's own signing is wrong";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string body = good;
    body.replace(body.find(from), from.size(), to);
    return signed_text(body, peer_);
  };
  const std::vector<std::string> hostile = {
      with("\"stage\":3", "\"stage\":256"),
      with("\"stage\":3", "\"stage\":-1"),
      with("\"stage\":3", "\"stage\":3.0"),
      with("\"stage\":3", "\"stage\":\"3\""),
      with("\"rate\":5120.5", "\"rate\":-1"),
      with("\"rate\":5120.5", "\"rate\":1e300"),
      with("\"rate\":5120.5", "\"rate\":null"),
      with("\"queue\":0.31", "\"queue\":[]"),
      with("\"on\":true", "\"on\":1"),
      with("\"v\":1", "\"v\":2"),
      with("\"seq\":77", "\"seq\":77,\"seq\":78"),
      with("\"seq\":77", "\"seq\":-7"),
      with("\"exp\":1700000060", "\"exp\":18446744073709551615"),
      with("\"inc\":\"0123", "\"inc\":\"0X23"),
      with("198.51.100.7:7741", "0.0.0.0:7741"),
      with("198.51.100.7:7741", "224.0.0.1:7741"),
      with("198.51.100.7:7741", "198.51.100.7:0"),
      with("198.51.100.7:7741", "host\\u0000:1"),
      with("\"addr\":[", "\"addr\":[\"a.b:1\",\"a.b:2\","),
      with("\"addr\":[", "\"addr\":[{},"),
      with("\"peer\":\"8", "\"peer\":\"G"),
  };
  for (const std::string& text : hostile) EXPECT_EQ(parse_any_record(text).code(), ErrorCode::kMalformed) << text;
}

// A later build may add fields; this one reads past them.
TEST_F(RecordTest, AnUnknownFieldIsReadPast) {
  std::string body = text_.substr(0, text_.find(",\"sig\""));
  EXPECT_TRUE(parse_any_record(signed_text(body + ",\"x\":[1]", peer_)).ok());
}

TEST(AddressTest, TakesWhatCanBeDialledOnly) {
  for (const std::string good : {"a.example:1", "198.51.100.7:65535", "[2001:db8::1]:7741", "127.0.0.1:80",
                                 "host-1:7741", "198.51.100.7:4700+61001", "via/198.51.100.7:443"})
    EXPECT_TRUE(check_address(good).ok()) << good;
  const std::string bad_ones =
      "a a: :1 a:0 a:65536 a:01 a:-1 a:1x 1.2.3:4 999.1.1.1:4 0.0.0.0:4 239.1.1.1:4 255.255.255.255:4 [::]:1 "
      "[ff02::1]:1 []:1 [fe80::1%eth0]:1 ::1:1 tcp://a:1 a_b:1 a:1+0 via/0.0.0.0:1 via/198.51.100.7 "
      "via/198.51.100.7:1+2 a/198.51.100.7:1";
  std::vector<std::string> bad = {"", ":", "a b:1", "a\n:1"};
  std::istringstream words(bad_ones);
  for (std::string word; words >> word;) bad.push_back(word);
  for (const std::string& text : bad) EXPECT_FALSE(check_address(text).ok()) << text;
}

TEST(RecordTimeTest, AllowsForClocksThatDifferAndNoMore) {
  const WallTime expires = kTestWall + kRecordTtl;
  EXPECT_TRUE(is_live(expires, expires + kClockSkewMax - 1s));
  EXPECT_FALSE(is_live(expires, expires + kClockSkewMax));
  EXPECT_FALSE(is_from_future(expires, kTestWall - kClockSkewMax));
  EXPECT_TRUE(is_from_future(expires, kTestWall - kClockSkewMax - 1s));
}

}  // namespace
}  // namespace shoal
