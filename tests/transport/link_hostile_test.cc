// A transport against an end that speaks bytes of its own choice.
#include <gtest/gtest.h>

#include "common/byte_codec.h"
#include "tests/transport/request_probe.h"
#include "tests/transport/sim_lab.h"
#include "tests/transport/transport_lab.h"
#include "transport/envelope.h"
#include "transport/limits.h"

namespace shoal {
namespace {

[[gnu::noinline]] std::vector<std::uint8_t> mutable_copy(const Bytes& bytes) {
  std::vector<std::uint8_t> copy(std::max<std::size_t>(1, bytes.size()));
  std::copy(bytes.view().begin(), bytes.view().end(), copy.begin());
  return copy;
}

class LinkHostileTest : public testing::Test {
 protected:
  // End 0 is raw, end 1 a transport. End 0 has the smaller PeerId, so its transfers are odd and the transport says
  // Hello first.
  void connect() {
    lab.wire(0).set_listener(&raw);
    if (!good.transport) start_transport(good, lab, 1);
    connection = lab.wire(0).connect(lab.peer(1), lab.address(1));
    ASSERT_TRUE(until([&] { return !raw.ups.empty() && !raw.messages.empty(); }));
  }
  void link() {
    connect();
    say(hello());
    ASSERT_TRUE(until([&] { return good.log.ups.size() == 1; }));
  }
  Hello hello(std::uint64_t incarnation = 1) {
    return Hello{limits::kProtocolVersion, test_run(), Session::of(lab.peer(0), incarnation), PeerRole::kPeer, {}};
  }
  void say(const Message& message, const std::optional<TransferHead>& transfer = std::nullopt) {
    auto bytes = pack_envelope(message, transfer);
    ASSERT_TRUE(bytes.ok());
    send(Lane::kControl, *bytes);
  }
  void send(Lane lane, const Bytes& bytes) {
    ASSERT_TRUE(until([&] {
      const Status status = lab.wire(0).send(connection, lane, bytes);
      return status.ok() || status.code() == ErrorCode::kUnreachable;
    }));
  }
  template <class M>
  std::vector<M> heard() {
    std::vector<M> found;
    for (const auto& message : raw.messages) {
      if (message.lane != Lane::kControl) continue;
      auto envelope = parse_envelope(message.bytes);
      if (envelope.ok() && std::holds_alternative<M>(envelope->message))
        found.push_back(std::get<M>(envelope->message));
    }
    return found;
  }
  bool until(const std::function<bool()>& done, Duration limit = 60s) { return lab.run_until(done, limit); }
  const TransportCounters& counters() { return good.transport->counters(); }
  void expect_cut_off() {
    EXPECT_TRUE(until([&] { return !raw.downs.empty(); }));
  }
  static TransferHead head(std::uint64_t id, const Bytes& frame) { return {id, {{frame.size(), crc32c(frame)}}}; }

  SimLab lab;
  WireLog raw;
  TransportEnd good;
  ConnectionId connection = 0;
};

TEST_F(LinkHostileTest, AnythingBeforeHelloEndsTheConnection) {
  connect();
  say(Goodbye{});
  say(hello());
  expect_cut_off();
  EXPECT_EQ(counters().malformed, 1u);
  EXPECT_TRUE(good.log.ups.empty());
  EXPECT_TRUE(good.log.messages.empty());
}

TEST_F(LinkHostileTest, GarbageBeforeHelloEndsTheConnection) {
  connect();
  send(Lane::kControl, numbered_bytes(100, 3));
  expect_cut_off();
  EXPECT_EQ(counters().malformed, 1u);
}

TEST_F(LinkHostileTest, SilenceBeforeHelloEndsTheConnection) {
  connect();
  const TimePoint start = lab.loop().now();
  expect_cut_off();
  EXPECT_LE(lab.loop().now() - start, limits::kHandshakeTime + 1s);
}

TEST_F(LinkHostileTest, AnotherVersionIsRefusedWithBothNumbers) {
  connect();
  auto bytes = pack_envelope(hello(), std::nullopt);
  std::vector<std::uint8_t> other = mutable_copy(*bytes);
  put_le<std::uint16_t>(other.data() + 4, 77);
  send(Lane::kControl, Bytes::from_vector(other));
  expect_cut_off();
  EXPECT_EQ(counters().wrong_version, 1u);
  ASSERT_FALSE(heard<Hello>().empty()) << "so that the other end can name the difference too";
  raw = WireLog{};
  connect();
  Hello wrong = hello();
  wrong.protocol = 78;
  say(wrong);
  expect_cut_off();
  EXPECT_EQ(counters().wrong_version, 2u);
}

TEST_F(LinkHostileTest, ASessionOfSomebodyElseIsRefused) {
  connect();
  Hello wrong = hello();
  wrong.session = Session::of(lab.peer(2), 1);
  say(wrong);
  expect_cut_off();
  EXPECT_EQ(counters().refused, 1u);
  EXPECT_TRUE(good.log.ups.empty());
}

TEST_F(LinkHostileTest, AFencedSessionIsToldSo) {
  start_transport(good, lab, 1);
  good.transport->fence(Session::of(lab.peer(0), 1));
  connect();
  say(hello());
  expect_cut_off();
  ASSERT_EQ(heard<Fenced>().size(), 1u);
  EXPECT_EQ(heard<Fenced>()[0].session, Session::of(lab.peer(0), 1));
  EXPECT_EQ(counters().stale_session, 1u);
}

TEST_F(LinkHostileTest, AnOldSessionIsToldSoAndTheNewOneStays) {
  link();
  const ConnectionId first = connection;
  connection = lab.wire(0).connect(lab.peer(1), lab.address(1));
  ASSERT_TRUE(until([&] { return raw.ups.size() == 2; }));
  say(hello(2));
  ASSERT_TRUE(until([&] { return good.log.ups.size() == 2; }));
  EXPECT_EQ(good.log.downs.at(0).second.code, ErrorCode::kStale);
  ASSERT_TRUE(until([&] { return raw.downs.size() == 1; }));
  EXPECT_EQ(raw.downs[0].connection, first);
  const ConnectionId second = connection;
  connection = lab.wire(0).connect(lab.peer(1), lab.address(1));
  ASSERT_TRUE(until([&] { return raw.ups.size() == 3; }));
  say(hello(1));
  ASSERT_TRUE(until([&] { return heard<Fenced>().size() == 1; }));
  connection = second;
  say(Goodbye{});
  EXPECT_TRUE(until([&] { return count_of<Goodbye>(good.log) == 1; }));
  EXPECT_EQ(counters().stale_session, 1u);
}

// A message that is lost while its link goes on is missed by nobody: a gradient would be waited for for ever.
TEST_F(LinkHostileTest, ADamagedMessageEndsTheLinkByName) {
  auto bytes = pack_envelope(Goodbye{}, std::nullopt);
  std::vector<std::uint8_t> flipped = mutable_copy(*bytes), foreign = flipped;
  flipped.back() ^= 1;
  foreign[4] ^= 1;  // the version: it was ours in the Hello
  std::uint64_t lives = 0;
  for (const Bytes& damaged : {Bytes::from_vector(flipped), Bytes::from_vector(foreign), numbered_bytes(10, 1)}) {
    raw = WireLog{};
    good.log = {};
    link();
    send(Lane::kControl, damaged);
    say(Goodbye{});
    ASSERT_TRUE(until([&] { return good.log.downs.size() == 1; }));
    EXPECT_EQ(good.log.downs[0].second.code, ErrorCode::kCorrupt);
    EXPECT_NE(good.log.downs[0].second.message.find("a damaged message"), std::string::npos);
    EXPECT_EQ(count_of<Goodbye>(good.log), 0u);
    EXPECT_EQ(counters().corrupt, ++lives);
    expect_cut_off();
  }
}

TEST_F(LinkHostileTest, WhatMakesNoSenseOnALinkIsCountedAndLosesNothingElse) {
  link();
  say(hello());
  say(Ping{1}, head(1, numbered_bytes(5, 1)));
  say(Goodbye{});
  ASSERT_TRUE(until([&] { return count_of<Goodbye>(good.log) == 1; }));
  EXPECT_EQ(counters().malformed, 2u);
  EXPECT_TRUE(good.log.downs.empty());
}

TEST_F(LinkHostileTest, TooMuchThatMakesNoSenseEndsTheLinkByName) {
  link();
  for (std::uint32_t i = 1; i < limits::kMalformedPerLinkMax; ++i) say(hello());
  say(Goodbye{});
  ASSERT_TRUE(until([&] { return count_of<Goodbye>(good.log) == 1; }));
  EXPECT_TRUE(good.log.downs.empty()) << "one less than too many";
  say(hello());
  ASSERT_TRUE(until([&] { return good.log.downs.size() == 1; }));
  EXPECT_EQ(good.log.downs[0].second.code, ErrorCode::kMalformed);
  EXPECT_NE(good.log.downs[0].second.message.find("make no sense"), std::string::npos);
  EXPECT_EQ(counters().malformed, limits::kMalformedPerLinkMax);
  expect_cut_off();
}

TEST_F(LinkHostileTest, AFloodOfMessagesEndsTheLinkByName) {
  link();
  std::uint64_t sent = 0;
  for (; sent < 3 * limits::kMessagesBurstMax && raw.downs.empty(); ++sent) {
    auto bytes = pack_envelope(Ping{sent}, std::nullopt);
    send(Lane::kControl, *bytes);
    if (sent % 1000 == 999) lab.run_for(1ms);
  }
  ASSERT_TRUE(until([&] { return good.log.downs.size() == 1; }));
  EXPECT_GT(sent, limits::kMessagesBurstMax);
  EXPECT_EQ(good.log.downs[0].second.code, ErrorCode::kTooLarge);
  EXPECT_NE(good.log.downs[0].second.message.find("messages a second"), std::string::npos);
  EXPECT_EQ(counters().too_large, 1u);
}

TEST_F(LinkHostileTest, WhatTheWireRefusesOfALinkIsCountedWithTheRest) {
  link();
  ASSERT_TRUE(lab.wire(1).admit_only({lab.peer(2)}).ok());
  ASSERT_TRUE(until([&] { return good.log.downs.size() == 1; }));
  EXPECT_EQ(good.log.downs[0].second.code, ErrorCode::kRefused);
  EXPECT_EQ(counters().refused, 1u);
}

TEST_F(LinkHostileTest, ADuplicateTransferIsDeliveredOnce) {
  link();
  const Bytes frame = numbered_bytes(1000, 1);
  for (int i = 0; i < 3; ++i) {
    say(Have{}, head(1, frame));
    send(Lane::kBulk, pack_chunk({1, 0}, {frame.view()}));
  }
  say(Goodbye{});
  ASSERT_TRUE(until([&] { return count_of<Goodbye>(good.log) == 1; }));
  lab.run_for(1s);
  EXPECT_EQ(count_of<Have>(good.log), 1u);
  EXPECT_EQ(good.log.frames.size(), 1u);
  EXPECT_EQ(counters().duplicate, 2u);
}

TEST_F(LinkHostileTest, FramesThatNeverComeEndTheLinkAndGiveTheirMemoryBack) {
  link();
  const Bytes frame = numbered_bytes(limits::kChunkBytes, 1);
  say(Have{}, TransferHead{1, {{limits::kTransferBytesMax, 0}}});
  send(Lane::kBulk, pack_chunk({1, 0}, {frame.view()}));
  ASSERT_TRUE(until([&] { return count_of<Have>(good.log) == 1; }));
  const TimePoint start = lab.loop().now();
  std::function<void()> ping = [&] {  // it is alive all the while
    auto bytes = pack_envelope(Ping{5}, std::nullopt);
    (void)lab.wire(0).send(connection, Lane::kControl, *bytes);
    lab.loop().after(1s, ping);
  };
  ping();
  ASSERT_TRUE(until([&] { return good.log.downs.size() == 1; }));
  EXPECT_GE(lab.loop().now() - start, limits::kTransferSilenceMax);
  EXPECT_LE(lab.loop().now() - start, limits::kTransferSilenceMax + 2 * limits::kPingPeriod);
  EXPECT_EQ(good.log.downs[0].second.code, ErrorCode::kTimeout);
  ASSERT_EQ(good.log.frames.size(), 1u);
  EXPECT_FALSE(good.log.frames[0].frames.ok());
}

TEST_F(LinkHostileTest, MoreBulkThanGrantedEndsTheLink) {
  link();
  const Bytes frame = numbered_bytes(limits::kChunkBytes, 1);
  for (std::uint64_t i = 0; i < 20 && raw.downs.empty(); ++i)
    send(Lane::kBulk, pack_chunk({1 + 2 * i, 0}, {frame.view()}));
  ASSERT_TRUE(until([&] { return good.log.downs.size() == 1; }));
  EXPECT_EQ(good.log.downs[0].second.code, ErrorCode::kMalformed);
  EXPECT_TRUE(heard<ByteCredit>().empty());
}

TEST_F(LinkHostileTest, FalseByteCreditsEndTheLink) {
  for (const ByteCredit& lie : {ByteCredit{1, 5}, ByteCredit{limits::kByteCreditsMax + 1, 0}, ByteCredit{~0ull, 0}}) {
    raw = WireLog{};
    good.log.downs.clear();
    good.log.ups.clear();
    link();
    say(lie);
    ASSERT_TRUE(until([&] { return good.log.downs.size() == 1; }));
    EXPECT_EQ(good.log.downs[0].second.code, ErrorCode::kMalformed);
  }
}

TEST_F(LinkHostileTest, AnnouncementsBeyondTheLimitAreAnsweredAndTheLinkStays) {
  link();
  for (std::uint64_t id = 1; id <= 7; id += 2) say(Have{}, TransferHead{id, {{limits::kTransferBytesMax, 0}}});
  ASSERT_TRUE(until([&] { return heard<DropTransfer>().size() == 2; }));
  EXPECT_EQ(heard<DropTransfer>()[0].transfer, 5u);
  EXPECT_EQ(count_of<Have>(good.log), 2u);
  EXPECT_EQ(counters().too_large, 2u);
  EXPECT_TRUE(good.log.downs.empty());
}

TEST_F(LinkHostileTest, SilenceEndsALink) {
  link();
  const TimePoint start = lab.loop().now();
  ASSERT_TRUE(until([&] { return good.log.downs.size() == 1; }));
  EXPECT_EQ(good.log.downs[0].second.code, ErrorCode::kTimeout);
  EXPECT_LE(lab.loop().now() - start, limits::kLinkSilenceMax + 2 * limits::kPingPeriod);
  EXPECT_GE(heard<Ping>().size(), 5u);
}

TEST_F(LinkHostileTest, AFloodOfPingsToOneThatDoesNotReadIsBounded) {
  link();
  // End 0's host stops: its lane fills, and the transport's answers must not pile up. The pings were sent before.
  for (std::uint64_t i = 0; i < 3 * limits::kOutboundQueueMax; ++i) {
    auto bytes = pack_envelope(Ping{i}, std::nullopt);
    ASSERT_TRUE(lab.wire(0).send(connection, Lane::kControl, *bytes).ok());
  }
  lab.network().freeze("host0:1");
  lab.run_for(2s);
  EXPECT_LT(good.transport->stats(lab.peer(0)).sent_bytes, 4u << 20);
  EXPECT_TRUE(good.log.downs.empty());
  lab.network().resume("host0:1");
  lab.run_for(1s);
  say(Goodbye{});
  EXPECT_TRUE(until([&] { return count_of<Goodbye>(good.log) == 1; }));
}

TEST_F(LinkHostileTest, SeededGarbageOnBothLanesNeverCostsMoreThanTheLimits) {
  Rng rng(7);
  for (int life = 0; life < 30; ++life) {
    raw = WireLog{};
    good.log.ups.clear();
    link();
    for (int i = 0; i < 40 && raw.downs.empty(); ++i) {
      auto bytes = pack_envelope(Have{Lease{{}, rng.next()}},
                                 TransferHead{2 * rng.below(50) + 1, {{rng.below(100000), 1}, {rng.below(9), 2}}});
      std::vector<std::uint8_t> mutated = mutable_copy(*bytes);
      if (rng.chance(0.5)) mutated[rng.below(mutated.size())] = static_cast<std::uint8_t>(rng.next());
      send(Lane::kControl, Bytes::from_vector(mutated));
      const Bytes chunk = pack_chunk({2 * rng.below(50) + rng.below(20) / 19, rng.below(4) * 100},
                                     {numbered_bytes(1 + rng.below(200), 1).view()});
      send(Lane::kBulk, rng.chance(0.05) ? numbered_bytes(rng.below(100), 1) : chunk);
      lab.run_for(1ms);
    }
    lab.wire(0).disconnect(connection);
    lab.run_for(1s);
  }
  EXPECT_GT(counters().corrupt + counters().malformed, 20u);
}

}  // namespace
}  // namespace shoal
