#include "transport/relay/relay.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "common/os/posix_file.h"
#include "common/rng.h"
#include "transport/envelope.h"
#include "transport/relay/relay_socket.h"

namespace shoal {
namespace {

constexpr int kPatienceS = 20;

// Blocking, on loopback.
class Dialled {
 public:
  explicit Dialled(const Relay& relay) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(relay.listening_at().port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{kPatienceS, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    SHOAL_CHECK_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  bool say(ByteView bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // As far as it comes before the end.
  std::vector<std::uint8_t> hear(std::size_t size) {
    std::vector<std::uint8_t> bytes(size);
    const ssize_t came = ::recv(socket_.get(), bytes.data(), size, MSG_WAITALL);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, came)));
    return bytes;
  }
  std::optional<RelayVerdict> verdict() {
    const auto verdict = parse_relay_verdict(hear(kRelayVerdictBytes));
    return verdict.ok() ? std::optional(*verdict) : std::nullopt;
  }
  bool is_over() {
    std::uint8_t byte;
    const ssize_t came = ::recv(socket_.get(), &byte, 1, 0);
    return came == 0 || (came < 0 && errno == ECONNRESET);
  }
  // How much leaves while nobody reads.
  std::size_t fill() {
    const std::vector<std::uint8_t> much(64u << 10);
    std::size_t all = 0;
    const timeval patience{0, 300'000};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    for (ssize_t sent; (sent = ::send(socket_.get(), much.data(), much.size(), MSG_NOSIGNAL)) > 0;)
      all += static_cast<std::size_t>(sent);
    return all;
  }
  void close() { socket_ = Descriptor(); }

 private:
  Descriptor socket_;
};

class RelayTest : public testing::Test {
 protected:
  explicit RelayTest(RelayOptions options = {}) : relay(Relay::start({"127.0.0.1", 0}, options).value()) {
    relay->follow(run, launch.id(), {a.id(), b.id()});
    EXPECT_TRUE(until([](const RelayStats& now) { return now.runs == 1; }));
  }

  bool until(const std::function<bool(const RelayStats&)>& holds) const {
    for (int i = 0; i < kPatienceS * 100; ++i) {
      if (holds(relay->stats())) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  std::optional<RelayVerdict> register_at(Dialled& home, const KeyPair& key, const KeyPair* signer = nullptr) {
    const RelayHome word{RelayKind::kRegister, run, key.id()};
    home.say(pack_relay_home(word));
    RelayNonce nonce;
    const auto heard = home.hear(nonce.size());
    if (heard.size() < nonce.size())
      return parse_relay_verdict(heard).ok() ? std::optional(*parse_relay_verdict(heard)) : std::nullopt;
    std::copy(heard.begin(), heard.end(), nonce.begin());
    home.say((signer == nullptr ? key : *signer).sign(home_text(word, nonce)));
    return home.verdict();
  }
  RelayCall call_of(const KeyPair& caller, const PeerId& callee, Lane lane = Lane::kControl) {
    RelayCall call;
    call.lane = lane;
    call.run = run;
    call.callee = callee;
    call.caller = caller.id();
    fill_randomly(call.call_name);
    call.signature = caller.sign(call_text(call));
    return call;
  }
  RelayIncoming incoming_at(Dialled& home) { return parse_relay_incoming(home.hear(kRelayIncomingBytes)).value(); }
  // Both ends of a lane that is joined.
  void join(Dialled& home, Dialled& caller, Dialled& callee) {
    caller.say(pack_relay_call(call_of(a, b.id())));
    callee.say(pack_relay_answer(incoming_at(home).call_name));
    ASSERT_EQ(caller.verdict(), RelayVerdict::kJoined);
    ASSERT_EQ(callee.verdict(), RelayVerdict::kJoined);
  }
  std::uint64_t given(RelayVerdict verdict) const {
    return relay->stats().verdicts.at(static_cast<std::size_t>(verdict));
  }

  const KeyPair run_key = KeyPair::generate(), launch = KeyPair::generate();
  const KeyPair a = KeyPair::generate(), b = KeyPair::generate(), stranger = KeyPair::generate();
  const RunId run{run_key.id().bytes};
  std::unique_ptr<Relay> relay;
};

TEST_F(RelayTest, CarriesBytesBothWaysUnaltered) {
  Dialled home(*relay), caller(*relay), callee(*relay);
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  const RelayCall call = call_of(a, b.id(), Lane::kBulk);
  caller.say(pack_relay_call(call));
  const RelayIncoming incoming = incoming_at(home);
  EXPECT_EQ(incoming.caller, a.id());
  EXPECT_EQ(incoming.lane, Lane::kBulk);
  EXPECT_NE(incoming.call_name, call.call_name);  // or a caller could answer itself, and have a way through for nothing
  callee.say(pack_relay_answer(incoming.call_name));
  ASSERT_EQ(caller.verdict(), RelayVerdict::kJoined);
  ASSERT_EQ(callee.verdict(), RelayVerdict::kJoined);
  std::vector<std::uint8_t> bytes(8u << 20);
  Rng rng(5);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  std::thread there([&] { EXPECT_TRUE(caller.say(bytes)); }), back([&] { EXPECT_TRUE(callee.say(bytes)); });
  std::vector<std::uint8_t> at_caller;
  std::thread hears([&] { at_caller = caller.hear(bytes.size()); });
  EXPECT_EQ(callee.hear(bytes.size()), bytes);
  for (std::thread* one : {&there, &back, &hears}) one->join();
  EXPECT_EQ(at_caller, bytes);
  EXPECT_TRUE(until([&](const RelayStats& now) { return now.carried_bytes == 2 * bytes.size() && now.pairs == 1; }));
}

TEST_F(RelayTest, BytesBehindACallAreTheOtherEnds) {
  Dialled home(*relay), caller(*relay), callee(*relay);
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  caller.say(pack_relay_call(call_of(a, b.id())));
  caller.say(pack_relay_ping());  // before the verdict: it stays whole
  callee.say(pack_relay_answer(incoming_at(home).call_name));
  ASSERT_EQ(callee.verdict(), RelayVerdict::kJoined);
  EXPECT_TRUE(is_relay_ping(callee.hear(kRelayPingBytes)));
}

TEST_F(RelayTest, ForgedAndReplayedWordsAreRefused) {
  Dialled home(*relay);
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  {
    Dialled forged(*relay), foreign(*relay);
    EXPECT_EQ(register_at(forged, b, &a), RelayVerdict::kNotListed);
    EXPECT_EQ(register_at(foreign, stranger), RelayVerdict::kNotListed);
  }
  {  // a signature over another connection's nonce
    Dialled first(*relay), second(*relay);
    const RelayHome word{RelayKind::kRegister, run, a.id()};
    RelayNonce nonce;
    first.say(pack_relay_home(word));
    second.say(pack_relay_home(word));
    const auto heard = first.hear(nonce.size());
    ASSERT_EQ(second.hear(nonce.size()).size(), nonce.size());
    std::copy(heard.begin(), heard.end(), nonce.begin());
    second.say(a.sign(home_text(word, nonce)));
    EXPECT_EQ(second.verdict(), RelayVerdict::kNotListed);
  }
  const RelayCall call = call_of(a, b.id());
  RelayCall forged = call;
  forged.call_name[3] ^= 1;
  Dialled caller(*relay), again(*relay), changed(*relay);
  changed.say(pack_relay_call(forged));
  EXPECT_EQ(changed.verdict(), RelayVerdict::kNotListed);
  caller.say(pack_relay_call(call));
  (void)incoming_at(home);
  again.say(pack_relay_call(call));
  EXPECT_EQ(again.verdict(), RelayVerdict::kMalformed);
  EXPECT_TRUE(again.is_over());
  EXPECT_TRUE(until([](const RelayStats& now) { return now.refused() == 5 && now.homes == 1; }));
}

TEST_F(RelayTest, ACallThatNobodyAnswersIsToldSo) {
  Dialled home(*relay), caller(*relay);
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  caller.say(pack_relay_call(call_of(a, b.id())));
  EXPECT_EQ(caller.verdict(), RelayVerdict::kNoAnswer);
  Dialled late(*relay), none(*relay);
  late.say(pack_relay_answer(incoming_at(home).call_name));
  EXPECT_EQ(late.verdict(), RelayVerdict::kNoAnswer);
  none.say(pack_relay_call(call_of(b, a.id())));
  EXPECT_EQ(none.verdict(), RelayVerdict::kNotRegistered);
}

TEST_F(RelayTest, AFloodOfCallsLeavesTheCalleeToOthers) {
  Dialled home(*relay);
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  std::size_t refused = 0;
  for (int i = 0; i < 40; ++i) {
    Dialled caller(*relay);
    caller.say(pack_relay_call(call_of(a, b.id())));
    caller.close();
  }
  ASSERT_TRUE(until([&](const RelayStats& now) {
    refused = now.verdicts[static_cast<std::size_t>(RelayVerdict::kRate)] +
              now.verdicts[static_cast<std::size_t>(RelayVerdict::kTooMany)];
    return refused > 0 && now.half_open == 0;
  }));
  Dialled caller(*relay), callee(*relay);
  caller.say(pack_relay_call(call_of(launch, b.id())));
  for (std::optional<RelayIncoming> incoming; !incoming;) {
    incoming = incoming_at(home);
    if (incoming->caller != launch.id())
      incoming.reset();
    else
      callee.say(pack_relay_answer(incoming->call_name));
  }
  EXPECT_EQ(caller.verdict(), RelayVerdict::kJoined);
}

TEST_F(RelayTest, WhoSaysNothingIsBoundedByItsAddress) {
  std::vector<std::unique_ptr<Dialled>> silent;
  for (std::size_t i = 0; i < kRelayHalfOpenPerPartyMax + 20; ++i) silent.push_back(std::make_unique<Dialled>(*relay));
  EXPECT_TRUE(until([](const RelayStats& now) {
    return now.half_open == kRelayHalfOpenPerPartyMax &&
           now.verdicts[static_cast<std::size_t>(RelayVerdict::kTooMany)] == 20;
  }));
  Dialled home(*relay);
  EXPECT_EQ(register_at(home, b), RelayVerdict::kJoined);  // the one that stood longest gave way
  EXPECT_TRUE(until([](const RelayStats& now) { return now.half_open == 0 && now.homes == 1; }));
  EXPECT_TRUE(silent.back()->verdict() || silent.back()->is_over());
}

TEST_F(RelayTest, GarbageEndsItsConnectionAlone) {
  Dialled home(*relay), caller(*relay), callee(*relay);
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  join(home, caller, callee);
  Rng rng(9);
  for (int i = 0; i < 100; ++i) {
    Dialled one(*relay);
    std::vector<std::uint8_t> bytes(1 + rng.below(400));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
    if (i % 2 == 0) {
      const Bytes word =
          i % 4 == 0 ? pack_relay_call(call_of(a, b.id())) : pack_relay_home({RelayKind::kRegister, run, b.id()});
      bytes.insert(bytes.begin(), word.data(), word.data() + 8 + rng.below(word.size() - 8));
    }
    one.say(bytes);
  }
  Dialled second(*relay);
  ASSERT_EQ(register_at(second, a), RelayVerdict::kJoined);
  second.say(std::vector<std::uint8_t>(8, 7));  // behind a registration
  EXPECT_EQ(second.verdict(), RelayVerdict::kMalformed);
  caller.say(pack_relay_ping());
  EXPECT_TRUE(is_relay_ping(callee.hear(kRelayPingBytes)));
}

TEST_F(RelayTest, WhoPingsWithoutEndIsRefusedAndOthersAreServed) {
  Dialled flood(*relay), home(*relay), caller(*relay), callee(*relay);
  ASSERT_EQ(register_at(flood, a), RelayVerdict::kJoined);
  std::vector<std::uint8_t> pings;
  for (int i = 0; i < 1000; ++i) {
    const Bytes ping = pack_relay_ping();
    pings.insert(pings.end(), ping.data(), ping.data() + ping.size());
  }
  flood.say(pings);
  EXPECT_TRUE(until([&](const RelayStats&) { return given(RelayVerdict::kRate) == 1; }));
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  join(home, caller, callee);
}

TEST_F(RelayTest, WhereAnEndStallsTheOtherIsNotReadAnyMore) {
  Dialled home(*relay), caller(*relay), callee(*relay), caller2(*relay), callee2(*relay);
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  join(home, caller, callee);
  join(home, caller2, callee2);
  const std::size_t left = caller.fill();
  caller2.say(pack_relay_ping());  // the others are carried all the same
  EXPECT_TRUE(is_relay_ping(callee2.hear(kRelayPingBytes)));
  EXPECT_EQ(callee.hear(left).size(), left);  // and nothing was lost
}

TEST_F(RelayTest, ADeadEndEndsTheOther) {
  Dialled home(*relay), caller(*relay), callee(*relay);
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  join(home, caller, callee);
  caller.say(pack_relay_ping());
  caller.close();
  EXPECT_TRUE(is_relay_ping(callee.hear(kRelayPingBytes)));  // its last word comes
  EXPECT_TRUE(callee.is_over());
  EXPECT_TRUE(until([](const RelayStats& now) { return now.pairs == 0 && now.homes == 1; }));
}

TEST_F(RelayTest, WhoLeavesTheListIsCutOff) {
  Dialled home(*relay), caller(*relay), callee(*relay);
  ASSERT_EQ(register_at(home, b), RelayVerdict::kJoined);
  join(home, caller, callee);
  relay->follow(run, launch.id(), {a.id()});
  EXPECT_TRUE(home.is_over());
  EXPECT_TRUE(caller.is_over());
  EXPECT_TRUE(callee.is_over());
  EXPECT_TRUE(until([](const RelayStats& now) { return now.pairs == 0 && now.homes == 0; }));
}

TEST_F(RelayTest, OnlyItsOwnRunsAreServedUnlessAnyIs) {
  Dialled teller(*relay);
  teller.say(pack_relay_home({RelayKind::kRun, run, run_key.id()}));
  EXPECT_EQ(teller.verdict(), RelayVerdict::kRunUnknown);
}

class OpenRelayTest : public RelayTest {
 protected:
  OpenRelayTest() : RelayTest({.bytes_per_second = 0, .any_run = true}) {}

  const KeyPair other_key = KeyPair::generate();
  const RunId other{other_key.id().bytes};

  std::optional<RelayVerdict> tell(Dialled& teller, const KeyPair& signer) {
    const RelayHome word{RelayKind::kRun, other, other_key.id()};
    teller.say(pack_relay_home(word));
    RelayNonce nonce;
    const auto heard = teller.hear(nonce.size());
    std::copy(heard.begin(), heard.end(), nonce.begin());
    teller.say(signer.sign(home_text(word, nonce)));
    return teller.verdict();
  }
  Bytes list_of(std::uint64_t epoch, const std::vector<PeerId>& peers, const KeyPair& signer) const {
    MemberList list{other, Epoch(epoch), {StageMembers{}}, {}};
    for (const PeerId& peer : peers) list.stages[0].members.push_back({Session::of(peer, 1), peer, {}, true, {}});
    Members members{pack_member_list(list).value(), {}};
    const Signature signature = signer.sign(members.body);
    members.signature = {signature.begin(), signature.end()};
    return pack_relay_list(members);
  }
};

TEST_F(OpenRelayTest, AListThatTheRunsKeySignedIsFollowed) {
  Dialled forged(*relay), teller(*relay);
  EXPECT_EQ(tell(forged, a), RelayVerdict::kNotListed);
  ASSERT_EQ(tell(teller, other_key), RelayVerdict::kJoined);
  teller.say(launch.id().bytes);
  teller.say(pack_relay_ping());
  teller.say(list_of(2, {b.id()}, other_key));
  teller.say(list_of(1, {}, other_key));  // an older one changes nothing
  const RelayHome word{RelayKind::kRegister, other, b.id()};
  const auto registered = [&] {
    Dialled home(*relay);
    home.say(pack_relay_home(word));
    return home.hear(sizeof(RelayNonce)).size() == sizeof(RelayNonce);
  };
  for (int i = 0; i < kPatienceS * 100 && !registered(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(registered());
  teller.say(list_of(3, {}, other_key));
  for (int i = 0; i < kPatienceS * 100 && registered(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(registered());
}

TEST_F(OpenRelayTest, AListOfAnotherKeyEndsItsConnection) {
  Dialled teller(*relay), large(*relay);
  ASSERT_EQ(tell(teller, other_key), RelayVerdict::kJoined);
  teller.say(launch.id().bytes);
  teller.say(list_of(2, {b.id()}, a));
  EXPECT_EQ(teller.verdict(), RelayVerdict::kMalformed);
  ASSERT_EQ(tell(large, other_key), RelayVerdict::kJoined);
  large.say(launch.id().bytes);
  large.say(std::vector<std::uint8_t>(8, 0xff));
  EXPECT_EQ(large.verdict(), RelayVerdict::kMalformed);
}

}  // namespace
}  // namespace shoal
