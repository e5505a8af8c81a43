// The start of a ZeroMQ wire: its trial, its ports, whom it lets in; and the greeting of a lane.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/transport/zmq_lab.h"
#include "transport/limits.h"
#include "transport/zmq/lane_greeting.h"
#include "transport/zmq/zmq_trial.h"

namespace shoal {
namespace {

// Lets everybody in who can prove a key, as no wire does, and answers greetings in its own way.
class CarelessListener {
 public:
  CarelessListener() {
    checks_.bind_inproc("zeromq.zap.01");
    socket_.configure(Lane::kControl, key_, false);
    socket_.listen_securely();
    SHOAL_CHECK(socket_.bind({"127.0.0.1", 0}).ok());
    address_ = socket_.bound_to();
  }
  PeerId id() const { return key_.id(); }
  HostPort address() const { return address_; }

  // `answer`: to a greeting; empty: none.
  using Answer = std::function<Bytes()>;
  void look(Duration wait, const Answer& answer) {
    zmq_wait({{&socket_, false}, {&checks_, false}}, -1, wait);
    while (const auto request = checks_.receive_parts()) checks_.send_parts(everybody_.answer(*request).parts);
    while (const auto received = socket_.receive()) {
      if (const Bytes bytes = answer(); bytes.size() > 0) (void)socket_.send(received->route, bytes);
    }
  }
  // Looks in a thread of its own while `work` runs.
  void beside(const Answer& answer, const std::function<void()>& work) {
    std::atomic<bool> stop{false};
    std::thread thread([&] {
      while (!stop) look(10ms, answer);
    });
    work();
    stop = true;
    thread.join();
  }

 private:
  KeyPair key_ = KeyPair::generate();
  ZmqContext context_;
  KeyCheck everybody_{true};
  ZmqSocket socket_ = ZmqSocket::make(context_, ZmqSocket::Kind::kRouter).value();
  ZmqSocket checks_ = ZmqSocket::make(context_, ZmqSocket::Kind::kReply).value();
  HostPort address_;
};

TEST(ZmqWireStartTest, TheTrialFailsWhereStrangersGetIn) {
  CarelessListener careless;
  KeyCheck open(true), admitted(false);
  Status under_foreign_name, stranger;
  careless.beside(
      [] {
        return pack_lane_answer({Lane::kControl, true, 1, ""});
      },
      [&] {
        under_foreign_name = try_as_stranger(careless.address(), careless.id(), open);
        stranger = try_as_stranger(careless.address(), careless.id(), admitted);
      });
  ASSERT_FALSE(under_foreign_name.ok());
  EXPECT_EQ(under_foreign_name.code(), ErrorCode::kRefused);
  EXPECT_NE(under_foreign_name.error().message.find("foreign PeerId"), std::string::npos);
  ASSERT_FALSE(stranger.ok());
  EXPECT_NE(stranger.error().message.find("not admitted"), std::string::npos);
}

TEST(ZmqWireStartTest, TheTrialAsksAStarvedListenerAgain) {
  // Two connections wait for an answer beyond their time, as with a process that is not given a core.
  CarelessListener starved;
  KeyCheck open(true);
  int greeted = 0;
  const auto late = [&] { return ++greeted > 2 ? pack_lane_answer({Lane::kControl, false, 0, "foreign"}) : Bytes(); };
  Status patient;
  starved.beside(late, [&] { patient = try_as_stranger(starved.address(), starved.id(), open, {100ms, 60s}); });
  EXPECT_TRUE(patient.ok()) << patient.error().message;
  EXPECT_GE(greeted, 3);
  // Where nobody answers at all, that is no verdict on libzmq.
  const Status nobody = try_as_stranger(starved.address(), starved.id(), open, {10ms, 20ms});
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.code(), ErrorCode::kTimeout);
  EXPECT_NE(nobody.error().message.find("too busy"), std::string::npos) << nobody.error().message;
}

TEST(ZmqWireStartTest, AListenerOfAnotherLaneVersionIsNamedAsThat) {
  CarelessListener listener;
  const Address address = listener.address().text();
  ZmqLab lab;
  WireLog log;
  lab.wire(0).set_listener(&log);
  (void)lab.wire(0).connect(listener.id(), address);
  const Bytes ours = pack_lane_answer({Lane::kControl, false, 0, "another version"});
  std::vector<std::uint8_t> answer(ours.data(), ours.data() + ours.size());
  answer[4] = 9;
  const Bytes theirs = Bytes::from_vector(answer);
  ASSERT_TRUE(lab.run_until(
      [&] {
        listener.look(0ms, [&] { return theirs; });
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
