// The contract of Wire over ZeroMQ where every dial goes over a relay; relays that misbehave at every stage of it.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <set>
#include <string>

#include "common/os/tcp_place.h"
#include "tests/transport/scripted_relay.h"
#include "tests/transport/wire_contract.h"
#include "tests/transport/zmq_lab.h"
#include "transport/zmq/doorway.h"
#include "transport/zmq/relayed_pipe.h"

namespace shoal {

// Ends that listen on loopback as ever, and are dialled over a relay.
class ZmqRelayLab final : public WireLab {
 public:
  EventLoop& loop() override { return zmq_.loop(); }
  PeerId peer(int index) override { return ZmqLab::key(index).id(); }
  ZmqWire& wire(int index) override { return zmq_.wire(index); }
  Address address(int index) override {
    wire(index).be_called_at({relay_.address()});
    if (!zmq_.run_until([&] { return relay_.has(peer(index)); }, 10s)) throw std::runtime_error("no registration");
    return relay_.via();
  }
  Address nobody() override { return "via/" + zmq_.nobody(); }
  Address silent() override { return "via/" + zmq_.silent(); }
  bool relayed() const override { return true; }
  void admit_only(int index, std::vector<PeerId> admitted) override { zmq_.admit_only(index, std::move(admitted)); }
  void destroy(int index) override { zmq_.destroy(index); }
  bool run_until(const std::function<bool()>& done, Duration limit) override { return zmq_.run_until(done, limit); }
  ScriptedRelay& relay() { return relay_; }

 private:
  ScriptedRelay relay_;
  ZmqLab zmq_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(ZmqRelayed, WireContract, ZmqRelayLab);

namespace {

std::vector<std::uint8_t> words(std::string_view text) { return {text.begin(), text.end()}; }
std::vector<std::uint8_t> words(RelayVerdict verdict) {
  const Bytes packed = pack_relay_verdict(verdict);
  return {packed.data(), packed.data() + packed.size()};
}

class ZmqRelayTest : public testing::Test {
 protected:
  ZmqRelayTest() {
    for (int i = 0; i < 2; ++i) lab.wire(i).set_listener(&log[i]);
  }
  ~ZmqRelayTest() override { EXPECT_FALSE(lab.relay().forged()); }
  bool until(const std::function<bool()>& done) { return lab.run_until(done, 20s); }
  bool is_registered() {
    (void)lab.address(1);
    return true;
  }
  ConnectionId dial() { return lab.wire(0).connect(lab.peer(1), lab.relay().via()); }
  // Why a dial over the relay as it is now fails.
  Error failure() {
    const std::size_t before = log[0].downs.size();
    (void)dial();
    EXPECT_TRUE(until([&] { return log[0].downs.size() > before; }));
    return log[0].downs.size() > before ? log[0].downs.back().cause : Error{ErrorCode::kInterrupted, "no end"};
  }
  // Whether 1 is called over the relay as a good one has it.
  bool is_called() {
    lab.relay().misbehave(RelayFault::kNone);
    if (!until([&] { return lab.relay().has(lab.peer(1)); })) return false;
    const std::size_t before = log[0].ups.size(), theirs = log[1].ups.size();
    (void)dial();
    if (!until([&] { return log[0].ups.size() > before && log[1].ups.size() > theirs; })) return false;
    const std::size_t heard = log[1].messages.size();
    if (!lab.wire(0).send(log[0].ups.back().connection, Lane::kBulk, numbered_bytes(100'000, 1)).ok()) return false;
    return until([&] { return log[1].messages.size() > heard; });
  }

  ZmqRelayLab lab;
  WireLog log[2];
};

TEST_F(ZmqRelayTest, ARefusalNamesTheRelayThePeerAndTheVerdictAndIsNeverTakenForThePeers) {
  const std::pair<RelayVerdict, ErrorCode> refusals[] = {{RelayVerdict::kMalformed, ErrorCode::kUnreachable},
                                                         {RelayVerdict::kNotListed, ErrorCode::kUnreachable},
                                                         {RelayVerdict::kNotRegistered, ErrorCode::kUnreachable},
                                                         {RelayVerdict::kTooMany, ErrorCode::kBusy},
                                                         {RelayVerdict::kNoAnswer, ErrorCode::kTimeout},
                                                         {RelayVerdict::kRunUnknown, ErrorCode::kUnreachable},
                                                         {RelayVerdict::kRate, ErrorCode::kBusy}};
  for (const auto& [verdict, code] : refusals) {
    lab.relay().misbehave(RelayFault::kSayToCall, words(verdict));
    const Error error = failure();
    EXPECT_EQ(error.code, code) << error.message;
    for (const std::string& named : {lab.relay().address(), short_name(lab.peer(1)), std::string(name_of(verdict))})
      EXPECT_NE(error.message.find(named), std::string::npos) << error.message;
  }
}

TEST_F(ZmqRelayTest, WhatIsNoVerdictEndsTheDialAlone) {
  ASSERT_TRUE(is_registered());
  for (const std::string& said :
       {std::string(), std::string("SHRV"), std::string("SHRV\xff\0\0\0", 8), std::string("SHRV\0\0\0\1", 8),
        std::string("HTTP/1.1 400 Bad Request"), std::string(100'000, 'x')}) {
    lab.relay().misbehave(RelayFault::kSayToCall, words(said));
    EXPECT_EQ(failure().code, ErrorCode::kUnreachable) << said.substr(0, 40);
  }
  EXPECT_TRUE(is_called());
}

TEST_F(ZmqRelayTest, AResetAtAnyStageEndsThatDialAlone) {
  ASSERT_TRUE(is_registered());
  for (const RelayFault fault :
       {RelayFault::kResetAtOnce, RelayFault::kResetCall, RelayFault::kResetBehindVerdict, RelayFault::kResetJoined}) {
    lab.relay().misbehave(fault);
    EXPECT_EQ(failure().code, ErrorCode::kUnreachable) << static_cast<int>(fault);
    EXPECT_TRUE(is_called()) << static_cast<int>(fault);
  }
}

TEST_F(ZmqRelayTest, ARelayThatStallsBehindTheJoinIsGivenUp) {
  ASSERT_TRUE(is_registered());
  lab.relay().misbehave(RelayFault::kStallJoined);
  const Error error = failure();
  EXPECT_TRUE(error.code == ErrorCode::kUnreachable || error.code == ErrorCode::kTimeout) << error.message;
  EXPECT_TRUE(is_called());
}

TEST_F(ZmqRelayTest, AGarbledConnectionEndsAndIsNoRefusalOfThePeers) {
  ASSERT_TRUE(is_registered());
  lab.relay().misbehave(RelayFault::kGarbleJoined);
  EXPECT_EQ(failure().code, ErrorCode::kUnreachable);
  EXPECT_TRUE(is_called());
}

TEST_F(ZmqRelayTest, ConnectionsThatAreUpGoDownWithTheirRelayAndComeAgain) {
  ASSERT_TRUE(is_registered());
  ASSERT_TRUE(is_called());
  const ConnectionId first = log[0].ups[0].connection, theirs = log[1].ups[0].connection;
  EXPECT_TRUE(lab.wire(0).relayed(first) && lab.wire(1).relayed(theirs));
  const std::size_t registrations = lab.relay().registrations();
  lab.relay().reset_all();
  ASSERT_TRUE(until([&] { return log[0].downs.size() == 1 && log[1].downs.size() == 1; }));
  EXPECT_EQ(log[0].downs[0].connection, first);
  EXPECT_EQ(log[1].downs[0].connection, theirs);
  ASSERT_TRUE(until([&] { return lab.relay().registrations() > registrations; })) << "it registers anew";
  EXPECT_TRUE(is_called());
}

TEST_F(ZmqRelayTest, ARegistrationThatIsRefusedOrAnsweredByAnythingIsTriedAgain) {
  for (const auto& said : {words(RelayVerdict::kRunUnknown), words(std::string(5000, 'x')), words("")}) {
    lab.relay().misbehave(RelayFault::kSayToHome, said);
    lab.wire(1).be_called_at({lab.relay().address()});
    lab.run_for(100ms);  // enough to begin; what is behind it holds whether it did or not
    lab.relay().reset_all();
    EXPECT_TRUE(is_called());
    lab.wire(1).be_called_at({});
    ASSERT_TRUE(until([&] { return !lab.relay().has(lab.peer(1)); })) << "nobody is called where it is no more";
  }
  EXPECT_EQ(failure().code, ErrorCode::kUnreachable);
}

TEST_F(ZmqRelayTest, CallsThatNobodyMadeAreAnsweredOnlySoOften) {
  lab.relay().misbehave(RelayFault::kFloodHome);
  (void)lab.address(1);
  const auto most = static_cast<std::size_t>(limits::kCallsBurst);
  ASSERT_TRUE(until([&] { return lab.relay().answers() >= most / 2; }));
  lab.run_for(500ms);
  EXPECT_LE(lab.relay().answers(), most + static_cast<std::size_t>(10 * limits::kCallsPerSecond));
  lab.relay().misbehave(RelayFault::kNone);
  lab.relay().reset_all();
  const ConnectionId direct = lab.wire(1).connect(lab.peer(0), lab.wire(0).listening_address());
  EXPECT_TRUE(until([&] { return !log[1].ups.empty() && log[1].ups.back().connection == direct; }));
}

TEST_F(ZmqRelayTest, WithoutARunNobodyIsCalled) {
  auto wire = make_zmq_wire(lab.loop(), {KeyPair::generate(), "", Admission::kOpen, {}});
  ASSERT_TRUE(wire.ok());
  WireLog stranger;
  (*wire)->set_listener(&stranger);
  (void)(*wire)->connect(lab.peer(1), lab.relay().via());
  ASSERT_TRUE(until([&] { return !stranger.downs.empty(); }));
  EXPECT_EQ(stranger.downs[0].cause.code, ErrorCode::kUnreachable);
}

// ---- one pipe

// Two connected sockets that never wait.
std::pair<Descriptor, Descriptor> joined_sockets() {
  int ends[2] = {};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}
std::string read_now(const Descriptor& from) {
  std::string text(1 << 20, '\0');
  const ssize_t got = ::recv(from.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}
bool has_ended(const Descriptor& end) {
  char byte;
  return ::recv(end.get(), &byte, 1, 0) == 0;
}

struct PipeBetween {
  PipeBetween() {
    auto [a, a_in] = joined_sockets();
    auto [b, b_in] = joined_sockets();
    left = std::move(a);
    right = std::move(b);
    pipe.emplace(std::move(a_in), std::move(b_in));
  }
  bool say(const Descriptor& from, std::string_view text) {
    return ::send(from.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  Descriptor left, right;
  std::optional<BytePipe> pipe;
  TimePoint now{};
};

TEST(BytePipeTest, WhatOneEndSaidLastIsHandedOnAndTheOtherMayStillSpeak) {
  PipeBetween between;
  ASSERT_TRUE(between.say(between.left, "last"));
  ::shutdown(between.left.get(), SHUT_WR);
  ASSERT_TRUE(between.pipe->turn(between.now));
  EXPECT_EQ(read_now(between.right), "last");
  EXPECT_TRUE(has_ended(between.right));
  ASSERT_TRUE(between.say(between.right, "reply"));
  ASSERT_TRUE(between.pipe->turn(between.now));
  EXPECT_EQ(read_now(between.left), "reply");
  ::shutdown(between.right.get(), SHUT_WR);
  EXPECT_FALSE(between.pipe->turn(between.now));
}

TEST(BytePipeTest, AnEndThatSaysNothingMoreIsNotWaitedForLong) {
  PipeBetween between;
  ::shutdown(between.left.get(), SHUT_WR);
  ASSERT_TRUE(between.pipe->turn(between.now));
  EXPECT_EQ(between.pipe->due(), between.now + BytePipe::kLastBytes);
  EXPECT_TRUE(between.pipe->turn(between.now + BytePipe::kLastBytes - 1ms));
  EXPECT_FALSE(between.pipe->turn(between.now + BytePipe::kLastBytes));
}

TEST(BytePipeTest, WhereAnEndReadsNothingTheOtherIsReadNoMoreAndAllComesInOrder) {
  PipeBetween between;
  const std::string portion(4096, 'p');
  std::string sent, heard;
  for (int turns = 0; turns < 64; ++turns) {
    const std::string next = std::to_string(turns) + portion;
    const ssize_t took = ::send(between.left.get(), next.data(), next.size(), MSG_NOSIGNAL);
    if (took > 0) sent += next.substr(0, static_cast<std::size_t>(took));
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(between.pipe->turn(between.now));
  }
  while (::send(between.left.get(), portion.data(), portion.size(), MSG_NOSIGNAL) == ssize_t{4096}) {
    sent += portion;
    ASSERT_TRUE(between.pipe->turn(between.now));
  }
  EXPECT_EQ(between.pipe->waits()[0].events & EPOLLIN, 0u) << "it holds what it has, and reads no more";
  EXPECT_NE(between.pipe->waits()[1].events & EPOLLOUT, 0u);
  while (heard.size() < sent.size()) {
    heard += read_now(between.right);
    ASSERT_TRUE(between.pipe->turn(between.now));
  }
  EXPECT_TRUE(heard == sent);
}

// Its connection to us is over, and nobody reads what it sent.
TEST(BytePipeTest, AnEndThatIsGoneIsNoticedThoughWhatItSaidWaitsHere) {
  PipeBetween between;
  const std::string portion(4096, 'p');
  while (::send(between.left.get(), portion.data(), portion.size(), MSG_NOSIGNAL) == ssize_t{4096})
    ASSERT_TRUE(between.pipe->turn(between.now));
  EXPECT_EQ(between.pipe->waits()[0].events, static_cast<std::uint32_t>(EPOLLRDHUP));
  EXPECT_EQ(between.pipe->due(), TimePoint::max());
  between.left = Descriptor();
  ASSERT_TRUE(between.pipe->turn(between.now));
  EXPECT_EQ(between.pipe->waits()[0].events, 0u) << "else it would be told again and again";
  EXPECT_EQ(between.pipe->due(), between.now + BytePipe::kLastBytes);
  EXPECT_FALSE(between.pipe->turn(between.now + BytePipe::kLastBytes));
}

TEST(CallingPipeTest, AnotherProcessThatComesToTheDoorIsNotLetIn) {
  ScriptedRelay relay;
  const KeyPair caller = KeyPair::generate(), callee = KeyPair::generate();
  relay.misbehave(RelayFault::kSayToCall, words(RelayVerdict::kJoined));
  RelayCall call{Lane::kControl, ZmqLab::run(), callee.id(), caller.id(), {1}, {}};
  call.signature = caller.sign(call_text(call));
  std::optional<HostPort> door;
  const TimePoint end = monotonic_now() + 10s;
  CallingPipe pipe(*parse_host_port(relay.address()), call, monotonic_now(), [&](const Result<HostPort>& told) {
    if (told.ok()) door = *told;
  });
  while (!door && monotonic_now() < end) ASSERT_TRUE(pipe.turn(monotonic_now()));
  ASSERT_TRUE(door);
  const Descriptor foreign = dial(*door).value(), ours = dial(*door).value();
  pipe.expect(own_place(ours)->port);
  while (!has_ended(foreign) && monotonic_now() < end) (void)pipe.turn(monotonic_now());
  EXPECT_TRUE(has_ended(foreign));
}

TEST(DoorwayTest, WhatComesOverARelayCountsAsFromTheRelaysAddress) {
  const Descriptor listener = listen_at({"127.0.0.1", 0}).value();
  const Descriptor dialled = dial(*own_place(listener)).value();
  Descriptor accepted;
  for (const TimePoint end = monotonic_now() + 10s; accepted.get() < 0 && monotonic_now() < end;)
    accepted = Descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  PipeOrigins origins;
  RefusalBook refusals;
  const Doorway doorway(connection_bounds(1024), refusals,
                        [&](const auto& from) { return origins.relay_behind(from); });
  EXPECT_EQ(doorway.party_of(accepted.get()), "127.0.0.1");
  EXPECT_EQ(doorway.relay_of(accepted.get()), "");
  origins.put(*own_place(dialled), {"203.0.113.9", 443});
  EXPECT_EQ(doorway.party_of(accepted.get()), "203.0.113.9");
  EXPECT_EQ(doorway.relay_of(accepted.get()), "203.0.113.9:443");
  origins.drop(*own_place(dialled));
  EXPECT_EQ(doorway.party_of(accepted.get()), "127.0.0.1");
}

}  // namespace
}  // namespace shoal
