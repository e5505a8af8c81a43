// The ZeroMQ wire against those who speak ZMTP in their own way.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "tests/transport/raw_curve.h"
#include "tests/transport/zmq_lab.h"
#include "transport/limits.h"
#include "transport/zmq/lane_greeting.h"
#include "transport/zmq/zmq_trial.h"

namespace shoal {
namespace {

std::size_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long total = 0, resident = 0;
  const int read = file ? std::fscanf(file, "%lu %lu", &total, &resident) : 0;
  if (file) std::fclose(file);
  return read == 2 ? resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

class ZmqHostileTest : public testing::Test {
 protected:
  void listen() { lab.wire(1).set_listener(&log[1]); }
  HostPort control() { return *parse_host_port(lab.address(1)); }
  CurveKey listener_key() { return *curve_public_of(lab.peer(1)); }
  // A raw peer that passed the key exchange and greeted under its own name.
  std::unique_ptr<RawCurve> greeted_peer() {
    auto raw = std::make_unique<RawCurve>(control());
    const KeyPair key = ZmqLab::key(0);
    EXPECT_TRUE(raw->ok() && raw->exchange_keys(key, listener_key()));
    EXPECT_TRUE(raw->send_part(pack_lane_greeting({Lane::kControl, key.id(), {1}}), false));
    return raw;
  }
  std::uint64_t refused(Refusal cause) { return lab.wire(1).refusals()[static_cast<std::size_t>(cause)]; }
  void expect_refused(Refusal cause, std::uint64_t count) {
    (void)lab.run_until([&] { return refused(cause) >= count; }, 10s);
    EXPECT_EQ(refused(cause), count) << name_of(cause);
  }
  void expect_a_good_peer_is_served(Duration limit = 10s) {
    lab.wire(2).set_listener(&log[2]);
    (void)lab.wire(2).connect(lab.peer(1), lab.address(1));
    EXPECT_TRUE(lab.run_until([&] { return !log[2].ups.empty(); }, limit));
  }
  // Sends parts of 1 MiB that never end, from a thread of its own; returns how much went through before it was cut off.
  std::size_t send_endless_message(RawCurve& raw, std::size_t limit) {
    std::atomic<bool> over{false};
    std::size_t sent = 0;
    std::thread sender([&] {
      const Bytes part = numbered_bytes(1u << 20, 1);
      while (sent < limit && raw.send_part(part, true)) sent += part.size();
      over = true;
    });
    EXPECT_TRUE(lab.run_until([&] { return over.load(); }, 60s));
    sender.join();
    return sent;
  }

  ZmqLab lab;
  WireLog log[3];
};

TEST_F(ZmqHostileTest, AnEndlessMessageOfAStrangerIsCutOffAndItsMemoryReturned) {
  listen();
  RawCurve raw(control());
  ASSERT_TRUE(raw.ok() && raw.exchange_keys(KeyPair::generate(), listener_key()));
  const std::size_t before = resident_bytes();
  EXPECT_LT(send_endless_message(raw, 2ull << 30), 512u << 20);
  EXPECT_LT(resident_bytes(), before + (400u << 20));
  expect_a_good_peer_is_served();
  expect_refused(Refusal::kEndless, 1);
  EXPECT_TRUE(log[1].messages.empty());
}

TEST_F(ZmqHostileTest, AnEndlessMessageOfAGreetedPeerIsCutOffToo) {
  listen();
  const auto raw = greeted_peer();
  const std::size_t before = resident_bytes();
  EXPECT_LT(send_endless_message(*raw, 2ull << 30), 512u << 20);
  EXPECT_LT(resident_bytes(), before + (400u << 20));
  expect_a_good_peer_is_served();
  expect_refused(Refusal::kEndless, 1);
}

TEST_F(ZmqHostileTest, AnOversizedPartEndsTheConnection) {
  listen();
  const auto raw = greeted_peer();
  (void)raw->send_part(numbered_bytes(limits::kControlBytesMax + 4096, 1), false);
  EXPECT_TRUE(raw->closed_within(5s));
  expect_a_good_peer_is_served();
}

TEST_F(ZmqHostileTest, AMessageOfSeveralPartsEndsTheConnection) {
  listen();
  const auto raw = greeted_peer();
  EXPECT_TRUE(raw->send_part(numbered_bytes(10, 1), true));
  EXPECT_TRUE(raw->send_part(numbered_bytes(10, 1), false));
  bool closed = false;
  std::thread waiting([&] { closed = raw->closed_within(5s); });
  lab.run_for(100ms);
  waiting.join();
  EXPECT_TRUE(closed);
  EXPECT_TRUE(log[1].messages.empty());
  expect_refused(Refusal::kMessage, 1);
}

TEST_F(ZmqHostileTest, NobodySpeaksWithoutCurve) {
  listen();
  RawCurve raw(control());
  ASSERT_TRUE(raw.ok() && raw.greet("NULL"));
  EXPECT_TRUE(raw.closed_within(5s));
  RawCurve noise(control());
  ASSERT_TRUE(noise.ok() && noise.send_bytes(std::vector<std::uint8_t>(100, 'x')));
  EXPECT_TRUE(noise.closed_within(5s));
  EXPECT_TRUE(lab.run_until([&] { return refused(Refusal::kKeyExchange) >= 1; }, 10s));
}

TEST_F(ZmqHostileTest, SilentConnectionsAreClosedAndDoNotKeepOthersOut) {
  listen();
  std::vector<std::unique_ptr<RawCurve>> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(std::make_unique<RawCurve>(control()));
  expect_a_good_peer_is_served(5s);
  EXPECT_TRUE(silent.front()->closed_within(5s));
  EXPECT_TRUE(silent.back()->closed_within(5s));
}

TEST_F(ZmqHostileTest, AGreetingUnderAForeignNameIsRefused) {
  listen();
  EXPECT_EQ(*knock(control(), lab.peer(1), ZmqLab::key(0), lab.peer(2), 5s), StrangerFate::kClaimRefused);
  EXPECT_EQ(*knock(control(), lab.peer(1), ZmqLab::key(0), lab.peer(1), 5s), StrangerFate::kClaimRefused);
  EXPECT_EQ(*knock(control(), lab.peer(1), ZmqLab::key(0), PeerId{}, 5s), StrangerFate::kClaimRefused);
  EXPECT_EQ(*knock(control(), lab.peer(1), ZmqLab::key(0), lab.peer(0), 5s), StrangerFate::kAccepted)
      << "the name that is its own";
  EXPECT_TRUE(log[1].ups.empty()) << "one lane is no connection";
  expect_refused(Refusal::kForeignPeer, 3);
}

TEST_F(ZmqHostileTest, OurOwnTrialIsNobodysOffence) {
  lab.admit_only(1, {lab.peer(2)});
  listen();
  ASSERT_TRUE(lab.wire(1).admit_only({lab.peer(2)}).ok());  // tries it once more
  expect_a_good_peer_is_served();
  EXPECT_EQ(refused(Refusal::kKey), 0u);
  EXPECT_EQ(refused(Refusal::kForeignPeer), 0u);
  EXPECT_EQ(*knock(control(), lab.peer(1), ZmqLab::key(0), lab.peer(0), 5s), StrangerFate::kKeyRefused);
  expect_refused(Refusal::kKey, 1);
}

TEST_F(ZmqHostileTest, AGreetingThatMakesNoSenseIsCountedByItsCause) {
  listen();
  const KeyPair key = ZmqLab::key(0);
  const Bytes greeting = pack_lane_greeting({Lane::kControl, key.id(), {1}});
  std::vector<std::uint8_t> foreign(greeting.data(), greeting.data() + greeting.size());
  foreign[4] = 9;  // the version
  for (const Bytes& sent : {Bytes::from_vector(foreign), greeting.slice(0, 20)}) {
    RawCurve raw(control());
    ASSERT_TRUE(raw.ok() && raw.exchange_keys(key, listener_key()));
    EXPECT_TRUE(raw.send_part(sent, false));
    EXPECT_FALSE(parse_lane_answer(raw.receive_message())->accepted);
  }
  expect_refused(Refusal::kLaneVersion, 1);
  expect_refused(Refusal::kGreeting, 1);
}

TEST_F(ZmqHostileTest, MessagesWithoutBytesAreNotHeldWithoutEnd) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a minute is too short for a flood of messages that TSan watches";
#endif
  listen();
  lab.wire(0).set_listener(&log[0]);
  const ConnectionId connection = lab.wire(0).connect(lab.peer(1), lab.address(1));
  ASSERT_TRUE(lab.run_until([&] { return log[1].ups.size() == 1 && log[0].ups.size() == 1; }, 10s));
  // The loop stands still: nothing is read, and all that is held is held by the wire.
  for (std::uint64_t i = 0; i < limits::kUnreadBytesMax / limits::kUnreadMessageCost + 1000; ++i)
    ASSERT_TRUE(lab.wire(0).send(connection, Lane::kControl, Bytes()).ok());
  const TimePoint end = monotonic_now() + 60s;
  while (refused(Refusal::kFlood) == 0 && monotonic_now() < end) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(refused(Refusal::kFlood), 1u);
  ASSERT_TRUE(lab.run_until([&] { return log[1].downs.size() == 1; }, 10s));
  EXPECT_EQ(log[1].downs[0].cause.code, ErrorCode::kTooLarge);
}

TEST_F(ZmqHostileTest, NamesAreNotAskedFor) {
  lab.wire(0).set_listener(&log[0]);
  const std::string port = std::to_string(control().port);
  (void)lab.wire(0).connect(lab.peer(1), "localhost:" + port);
  ASSERT_TRUE(lab.run_until([&] { return log[0].downs.size() == 1; }, 10s));
  EXPECT_EQ(log[0].downs[0].cause.code, ErrorCode::kUnreachable);
  EXPECT_NE(log[0].downs[0].cause.message.find("localhost:" + port + " is a name"), std::string::npos)
      << log[0].downs[0].cause.message;
}

// What the listener names is its own port; a router may show it under another one.
TEST_F(ZmqHostileTest, TheBulkLaneIsDialledWhereTheAddressSays) {
  lab.wire(0).set_listener(&log[0]);
  lab.wire(1).set_listener(&log[1]);
  const std::string address = lab.address(1);
  (void)lab.wire(0).connect(lab.peer(1), address + "+" + std::to_string(control().port + 1));
  ASSERT_TRUE(lab.run_until([&] { return log[0].ups.size() == 1; }, 10s));
  (void)lab.wire(0).connect(lab.peer(1), address + "+1");
  ASSERT_TRUE(lab.run_until([&] { return log[0].downs.size() == 1; }, 10s));
  EXPECT_NE(log[0].downs[0].cause.message.find("nobody listens at " + address + "+1"), std::string::npos)
      << log[0].downs[0].cause.message;
  EXPECT_EQ(log[0].ups.size(), 1u);
}

TEST_F(ZmqHostileTest, TheBulkLaneCannotBeTakenBySomebodyElse) {
  listen();
  const auto raw = greeted_peer();  // waits for its bulk lane with secret {1}
  const auto answer = parse_lane_answer(raw->receive_message());
  ASSERT_TRUE(answer.ok() && answer->accepted);
  const HostPort bulk_port{control().host, answer->bulk_port};
  const PeerId victim = ZmqLab::key(0).id();
  RawCurve thief(bulk_port);
  ASSERT_TRUE(thief.exchange_keys(ZmqLab::key(2), listener_key()));
  EXPECT_TRUE(thief.send_part(pack_lane_greeting({Lane::kBulk, victim, {1}}), false));
  const auto refusal = parse_lane_answer(thief.receive_message());
  ASSERT_TRUE(refusal.ok());
  EXPECT_FALSE(refusal->accepted);
  EXPECT_TRUE(thief.closed_within(5s));
  EXPECT_TRUE(log[1].ups.empty());
  // Its owner takes it.
  RawCurve own(bulk_port);
  ASSERT_TRUE(own.exchange_keys(ZmqLab::key(0), listener_key()));
  EXPECT_TRUE(own.send_part(pack_lane_greeting({Lane::kBulk, victim, {1}}), false));
  ASSERT_TRUE(lab.run_until([&] { return log[1].ups.size() == 1; }, 5s));
  EXPECT_EQ(log[1].ups[0].peer, victim);
}

TEST_F(ZmqHostileTest, AMessageBeforeTheSecondLaneEndsTheConnection) {
  listen();
  const auto raw = greeted_peer();
  EXPECT_TRUE(raw->send_part(numbered_bytes(10, 1), false));
  EXPECT_TRUE(raw->closed_within(5s));
  EXPECT_TRUE(log[1].ups.empty());
  expect_refused(Refusal::kMessage, 1);
}
}  // namespace
}  // namespace shoal
