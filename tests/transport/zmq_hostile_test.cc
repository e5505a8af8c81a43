// The ZeroMQ wire against those who speak ZMTP in their own way, and its start.
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

TEST(ZmqWireStartTest, TheTrialFailsWhereStrangersGetIn) {
  // A listener without a key check that accepts every claim, as a wire would be whose check is not asked.
  const KeyPair key = KeyPair::generate();
  ZmqContext context;
  ZmqSocket careless = ZmqSocket::make(context, ZmqSocket::Kind::kRouter).value();
  KeyCheck everybody(true);
  ZmqSocket checks = ZmqSocket::make(context, ZmqSocket::Kind::kReply).value();
  checks.bind_inproc("zeromq.zap.01");
  careless.configure(Lane::kControl, key, false);
  careless.listen_securely();
  ASSERT_TRUE(careless.bind({"127.0.0.1", 0}).ok());
  const HostPort address = careless.bound_to();
  std::atomic<bool> stop{false};
  std::thread listener([&, socket = std::move(careless), zap = std::move(checks)]() mutable {
    while (!stop) {
      zmq_wait({{&socket, false}, {&zap, false}}, -1, 10ms);
      while (const auto request = zap.receive_parts()) zap.send_parts(everybody.answer(*request).parts);
      while (const auto received = socket.receive())
        (void)socket.send(received->route, pack_lane_answer({Lane::kControl, true, 1, ""}));
    }
    socket = ZmqSocket();
    zap = ZmqSocket();
  });
  KeyCheck open(true), admitted(false);
  const Status under_foreign_name = try_as_stranger(address, key.id(), open);
  const Status stranger = try_as_stranger(address, key.id(), admitted);
  stop = true;
  listener.join();
  ASSERT_FALSE(under_foreign_name.ok());
  EXPECT_EQ(under_foreign_name.code(), ErrorCode::kRefused);
  EXPECT_NE(under_foreign_name.error().message.find("foreign PeerId"), std::string::npos);
  ASSERT_FALSE(stranger.ok());
  EXPECT_NE(stranger.error().message.find("not admitted"), std::string::npos);
}

TEST(ZmqWireStartTest, AListenerOfAnotherLaneVersionIsNamedAsThat) {
  const KeyPair key = KeyPair::generate();
  ZmqContext context;
  ZmqSocket socket = ZmqSocket::make(context, ZmqSocket::Kind::kRouter).value();
  KeyCheck everybody(true);
  ZmqSocket checks = ZmqSocket::make(context, ZmqSocket::Kind::kReply).value();
  checks.bind_inproc("zeromq.zap.01");
  socket.configure(Lane::kControl, key, false);
  socket.listen_securely();
  ASSERT_TRUE(socket.bind({"127.0.0.1", 0}).ok());
  const Address address = socket.bound_to().text();
  ZmqLab lab;
  WireLog log;
  lab.wire(0).set_listener(&log);
  (void)lab.wire(0).connect(key.id(), address);
  const Bytes ours = pack_lane_answer({Lane::kControl, false, 0, "another version"});
  std::vector<std::uint8_t> answer(ours.data(), ours.data() + ours.size());
  answer[4] = 9;
  const Bytes theirs = Bytes::from_vector(answer);
  ASSERT_TRUE(lab.run_until(
      [&] {
        zmq_wait({{&socket, false}, {&checks, false}}, -1, 0ms);
        while (const auto request = checks.receive_parts()) checks.send_parts(everybody.answer(*request).parts);
        while (const auto received = socket.receive()) (void)socket.send(received->route, theirs);
        return !log.downs.empty();
      },
      10s));
  EXPECT_EQ(log.downs[0].cause.code, ErrorCode::kVersion);
  EXPECT_NE(log.downs[0].cause.message.find(address), std::string::npos) << log.downs[0].cause.message;
}

TEST(ZmqWireStartTest, AListenerWithoutAKeyCheckLetsNobodyIn) {
  const KeyPair key = KeyPair::generate();
  ZmqContext context;
  ZmqSocket socket = ZmqSocket::make(context, ZmqSocket::Kind::kRouter).value();
  socket.configure(Lane::kControl, key, false);
  socket.listen_securely();
  ASSERT_TRUE(socket.bind({"127.0.0.1", 0}).ok());
  const KeyPair stranger = KeyPair::generate();
  EXPECT_EQ(*knock(socket.bound_to(), key.id(), stranger, stranger.id(), 1s), StrangerFate::kSilence);
  EXPECT_FALSE(socket.receive().has_value());
}

TEST(ZmqWireStartTest, APortInUseIsNamedWithTheRemedy) {
  ThreadLoop loop;
  auto first = make_zmq_wire(loop, {KeyPair::generate(), "127.0.0.1:0", Admission::kOpen, {}});
  ASSERT_TRUE(first.ok()) << first.error().message;
  const std::string address = (*first)->listening_address();
  const auto second = make_zmq_wire(loop, {KeyPair::generate(), address, Admission::kOpen, {}});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), ErrorCode::kBusy);
  EXPECT_NE(second.error().message.find(address.substr(address.rfind(':') + 1)), std::string::npos)
      << second.error().message;
  EXPECT_NE(second.error().message.find("HINT"), std::string::npos);
}

TEST(ZmqWireStartTest, BadAddressesAreNamed) {
  ThreadLoop loop;
  for (const char* address :
       {"nonsense", "127.0.0.1:", ":5", "127.0.0.1:70000", "127.0.0.1:5x", "::1:5", "a b:5", "tcp://1.2.3.4:5"}) {
    const auto wire = make_zmq_wire(loop, {KeyPair::generate(), address, Admission::kOpen, {}});
    ASSERT_FALSE(wire.ok()) << address;
    EXPECT_EQ(wire.code(), ErrorCode::kInput) << address;
    EXPECT_NE(wire.error().message.find(address), std::string::npos);
  }
  const auto elsewhere = make_zmq_wire(loop, {KeyPair::generate(), "203.0.113.7:0", Admission::kOpen, {}});
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.code(), ErrorCode::kInput);
}

TEST(ZmqWireStartTest, OneThatOnlyDialsNeedsNoPort) {
  ZmqLab lab;
  WireLog log, other;
  lab.wire(1).set_listener(&other);
  auto wire = make_zmq_wire(lab.loop(), {KeyPair::generate(), "", Admission::kOpen, {}});
  ASSERT_TRUE(wire.ok());
  EXPECT_EQ((*wire)->listening_address(), "");
  (*wire)->set_listener(&log);
  (void)(*wire)->connect(lab.peer(1), lab.address(1));
  EXPECT_TRUE(lab.run_until([&] { return log.ups.size() == 1 && other.ups.size() == 1; }, 10s));
}

TEST(ZmqWireStartTest, AKeyAdmittedLaterGetsIn) {
  ZmqLab lab;
  WireLog log[2];
  lab.admit_only(1, {lab.peer(2)});
  for (int i : {0, 1}) lab.wire(i).set_listener(&log[i]);
  (void)lab.wire(0).connect(lab.peer(1), lab.address(1));
  ASSERT_TRUE(lab.run_until([&] { return log[0].downs.size() == 1; }, 10s));
  lab.wire(1).admit(lab.peer(0));
  (void)lab.wire(0).connect(lab.peer(1), lab.address(1));
  EXPECT_TRUE(lab.run_until([&] { return log[0].ups.size() == 1; }, 10s));
}

TEST(LaneGreetingTest, ComesBackAndIsRefusedAtEveryOtherLengthOrVersion) {
  LaneGreeting greeting{Lane::kBulk, KeyPair::generate().id(), {1, 2, 3}};
  const Bytes bytes = pack_lane_greeting(greeting);
  ASSERT_EQ(bytes.size(), kLaneGreetingBytes);
  const auto parsed = parse_lane_greeting(bytes);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->peer, greeting.peer);
  EXPECT_EQ(parsed->secret, greeting.secret);
  EXPECT_EQ(parsed->lane, Lane::kBulk);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_lane_greeting(bytes.view().first(size)).ok());
  const Bytes answer = pack_lane_answer({Lane::kControl, false, 4701, "because"});
  const auto understood = parse_lane_answer(answer);
  ASSERT_TRUE(understood.ok());
  EXPECT_EQ(understood->reason, "because");
  EXPECT_EQ(understood->bulk_port, 4701);
  EXPECT_FALSE(understood->accepted);
  for (std::size_t size = 0; size < answer.size(); ++size)
    EXPECT_FALSE(parse_lane_answer(answer.view().first(size)).ok());
  std::vector<std::uint8_t> other(kLaneGreetingBytes);
  std::copy(bytes.view().begin(), bytes.view().end(), other.begin());
  other[4] = 9;
  EXPECT_EQ(parse_lane_greeting(other).code(), ErrorCode::kVersion);
}

}  // namespace
}  // namespace shoal
