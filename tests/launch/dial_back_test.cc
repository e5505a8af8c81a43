// Which joiners the launching process dials back, how often and how many at a time.
#include "runtime/launch/dial_back.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/transport/sim_lab.h"
#include "tests/transport/transport_lab.h"

namespace shoal {
namespace {

class DialBackTest : public testing::Test {
 protected:
  DialBackTest() {
    start_transport(end, lab, 0);
    dial_back = std::make_unique<DialBack>(*end.transport, lab.loop(),
                                           [this](const DialBack::Verdict& verdict) { verdicts.push_back(verdict); });
  }
  static Remote remote_of(std::uint8_t number) {
    PeerId peer;
    peer.bytes[0] = number;
    peer.bytes[30] = 9;
    return {peer, Session::of(peer, 1), PeerRole::kPeer};
  }
  // Comes from where it says that it is.
  void check(const Remote& from, const std::string& address) {
    dial_back->check(from, {{address}}, {.host = address.substr(0, address.rfind(':')), .paid = false}, JoinRequest{});
  }

  // How many were dialled everywhere.
  std::size_t dialled() const {
    return static_cast<std::size_t>(std::count_if(verdicts.begin(), verdicts.end(), [](const DialBack::Verdict& one) {
      return one.whole && one.why.find(":1") != std::string::npos;
    }));
  }

  SimLab lab;
  TransportEnd end;
  std::vector<DialBack::Verdict> verdicts;
  std::unique_ptr<DialBack> dial_back;
};

TEST_F(DialBackTest, OnePeerIsDialledOnceUntilThePauseIsOver) {
  for (int i = 0; i < 20; ++i) {
    check(remote_of(1), "nobody:1");
    lab.run_for(100ms);
  }
  ASSERT_FALSE(verdicts.empty());
  for (const DialBack::Verdict& verdict : verdicts) EXPECT_EQ(verdict.found.reach, Reach::kNone);
  EXPECT_NE(verdicts[0].why.find("nobody:1"), std::string::npos) << verdicts[0].why;
  (void)lab.wire(1);
  const Remote joiner{lab.peer(1), Session::of(lab.peer(1), 1), PeerRole::kPeer};
  check(joiner, "nobody:1");
  lab.run_for(1s);
  verdicts.clear();
  check(joiner, lab.address(1));
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].found.reach, Reach::kNone) << "another address within the pause is another dial";
  lab.run_for(DialBack::kPause);
  check(joiner, lab.address(1));
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[1].found.addresses, std::vector<std::string>{lab.address(1)});
}

TEST_F(DialBackTest, WhatWasReachedHoldsForThePause) {
  (void)lab.wire(1);
  const Remote joiner{lab.peer(1), Session::of(lab.peer(1), 1), PeerRole::kPeer};
  check(joiner, lab.address(1));
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].found.reach, Reach::kDirect);
  lab.network().nats().set(lab.address(1), sim_firewall(true));
  check(joiner, lab.address(1));
  lab.run_for(DialBack::kPause);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[1].found.reach, Reach::kDirect);
  check(joiner, lab.address(1));
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_EQ(verdicts[2].found.reach, Reach::kNone);
  EXPECT_NE(verdicts[2].why, "");
}

// One that hangs keeps nobody waiting; what answers later is told, and what does not is not on the list.
TEST_F(DialBackTest, AJoinerWaitsSoLongForAnAnswerAndALaterOneRaisesIt) {
  (void)lab.wire(1);
  const Remote joiner{lab.peer(1), Session::of(lab.peer(1), 1), PeerRole::kPeer};
  lab.network().block(lab.address(0), "hangs:1");
  SimHostShape far;
  far.latency = 4 * DialBack::kAnswerTime / 3;
  lab.network().set_shape(lab.address(1), far);
  dial_back->check(joiner, {{"hangs:1", lab.address(1)}}, {.host = "", .paid = true}, JoinRequest{});
  lab.run_for(DialBack::kAnswerTime + 1ms);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].found.reach, Reach::kNone);
  EXPECT_NE(verdicts[0].why, "");
  EXPECT_FALSE(verdicts[0].whole);
  ASSERT_TRUE(verdicts[0].request.has_value());
  lab.run_for(20s);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[1].found, (Whereabouts{{lab.address(1)}, Reach::kDirect}));
  EXPECT_FALSE(verdicts[1].request.has_value()) << "it was admitted by then";
}

TEST_F(DialBackTest, OnlySoManyPeersAreDialledAtATime) {
  // Connections to a frozen host hang until the wire gives up.
  (void)lab.wire(1);
  lab.network().freeze(lab.address(1));
  for (std::uint8_t i = 1; i <= 2 * DialBack::kAtOnce; ++i) check(remote_of(i), lab.address(1));
  EXPECT_EQ(lab.network().connections(), DialBack::kAtOnce);
  lab.run_for(6s);
  EXPECT_EQ(dialled(), DialBack::kAtOnce);
  EXPECT_EQ(lab.network().connections(), DialBack::kAtOnce);
  lab.run_for(6s);
  EXPECT_EQ(dialled(), 2 * DialBack::kAtOnce) << "the others stood in line";
}

// Addresses that refuse at once free their places at once: what bounds them is the rate.
TEST_F(DialBackTest, AFloodOfStrangersDialsNoMoreThanSoManyASecond) {
  std::uint32_t number = 0;
  const auto stranger = [&] {
    PeerId peer;
    std::memcpy(peer.bytes.data(), &++number, sizeof number);
    return Remote{peer, Session::of(peer, 1), PeerRole::kPeer};
  };
  for (int tenth = 0; tenth < 50; ++tenth) {
    for (int i = 0; i < 100; ++i) check(stranger(), "nobody:1");
    lab.run_for(100ms);
  }
  const double most = static_cast<double>(DialBack::kAtOnce) + 5 * DialBack::kPerSecond;
  EXPECT_LE(static_cast<double>(dialled()), most);
  EXPECT_GE(static_cast<double>(dialled()), 5 * DialBack::kPerSecond * 0.9) << "and no fewer";
}

// What a request makes us dial elsewhere costs its sender more than the host that it hits.
TEST_F(DialBackTest, ElsewhereIsDialledOnlyForWhoPaid) {
  (void)lab.wire(1);
  const Remote joiner{lab.peer(1), Session::of(lab.peer(1), 1), PeerRole::kPeer};
  dial_back->check(joiner, {{lab.address(1)}}, {.host = "", .paid = false}, JoinRequest{});
  EXPECT_EQ(lab.network().connections(), 0u);
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].found.reach, Reach::kNone);
  ASSERT_TRUE(verdicts[0].request.has_value()) << "it takes part all the same";
  dial_back->check(joiner, {{lab.address(1)}}, {.host = "198.51.100.9", .paid = true});
  lab.run_for(6s);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[1].found.addresses, std::vector<std::string>{lab.address(1)});
}

TEST(DialableAddressesTest, PrivateOnesAreDialledInOnesOwnSubnetsAlone) {
  using List = std::vector<std::string>;
  const Whereabouts both{{"203.0.113.5:1", "192.168.1.5:1", "[fd00::1:5]:1"}, Reach::kDirect};
  EXPECT_EQ(dialable_from({{"192.168.1.7:9"}}, both).addresses, (List{"192.168.1.5:1", "203.0.113.5:1"}));
  EXPECT_EQ(dialable_from({{"192.168.2.7:9", "[fd00::2]:1"}}, both).addresses,
            (List{"[fd00::1:5]:1", "203.0.113.5:1"}));
  EXPECT_EQ(dialable_from({}, both).addresses, List{"203.0.113.5:1"});
  EXPECT_EQ(dialable_from({{"198.51.100.1:1"}}, {{"10.0.0.1:1"}, Reach::kLocal}).addresses, List{});
  EXPECT_EQ(dialable_from({{"10.9.0.1:1"}}, {{"10.0.0.1:1"}, Reach::kDirect}).addresses, List{"10.0.0.1:1"})
      << "the whole run is within one private network";
  EXPECT_EQ(reach_at({{"10.0.0.1:1", "203.0.113.5:1"}}), Reach::kDirect);
  EXPECT_EQ(reach_at({{"10.0.0.1:1", "127.0.0.1:1"}}), Reach::kLocal);
  EXPECT_EQ(reach_at({}), Reach::kNone);
}

TEST(DialableAddressesTest, ARelayIsDialledForNobodyWhoTellsIt) {
  using List = std::vector<std::string>;
  const List told = {"via/203.0.113.5:443", "203.0.113.5:1"};
  for (const bool paid : {false, true})
    EXPECT_EQ(dialable_for({told}, {.host = "203.0.113.5", .paid = paid}).addresses, List{"203.0.113.5:1"});
  EXPECT_EQ(reach_at({{told[0]}}), Reach::kNone);
  EXPECT_EQ(usable({told}).addresses, told) << "a ticket's are kept";
  EXPECT_EQ(relays_as_homes({told}).homes, List{"203.0.113.5:443"});
  const Whereabouts on_list{told, Reach::kNone, {"198.51.100.1:443"}};
  EXPECT_EQ(dialable_from({{"via/10.0.0.1:443"}}, on_list).addresses, List{"203.0.113.5:1"});
  EXPECT_EQ(dialable_from({}, on_list).homes, on_list.homes) << "the signed list says these";
  EXPECT_EQ(dialable_from({{"via/10.0.0.1:443"}}, {{"10.0.0.2:1"}, Reach::kLocal}).addresses, List{})
      << "a relay's subnet is not ours";
}

TEST(DialableAddressesTest, OneComesFromThereOrPaysAndPrivateRangesAreForTheirOwn) {
  const std::string there = "203.0.113.5:4700", elsewhere = "198.51.100.7:4700";
  const std::vector<std::string> private_ones = {"10.1.2.3:1", "172.31.0.1:1", "192.168.1.1:1", "100.64.0.1:1",
                                                 "[fd00::1]:1"};
  const std::vector<std::string> local_ones = {"127.0.0.1:1", "169.254.169.254:1", "[::1]:1", "[fe80::1]:1",
                                               "[::ffff:127.0.0.1]:1"};
  using List = std::vector<std::string>;
  EXPECT_EQ(dialable_for({{there, "198.51.100.7:4702+4704"}}, {.host = "203.0.113.5", .paid = false}).addresses,
            (List{there, "203.0.113.5:4702+4704"}))
      << "a router may forward the port that it tells";
  EXPECT_EQ(dialable_for({{there}}, {.host = "::ffff:203.0.113.5", .paid = false}).addresses, List{there});
  EXPECT_EQ(dialable_for({{there, elsewhere}}, {.host = "203.0.113.5", .paid = true}).addresses,
            (List{there, elsewhere}));
  EXPECT_EQ(dialable_for({{there}}, {.host = "", .paid = false}).addresses, List{});
  for (const bool paid : {false, true}) {
    EXPECT_EQ(dialable_for({private_ones}, {.host = "203.0.113.5", .paid = paid}).addresses, List{"203.0.113.5:1"});
    EXPECT_EQ(dialable_for({private_ones}, {.host = "", .paid = paid}).addresses, List{});
    EXPECT_EQ(dialable_for({local_ones}, {.host = "192.168.1.7", .paid = paid}).addresses, List{"192.168.1.7:1"});
  }
  List and_where_it_comes_from = private_ones;
  and_where_it_comes_from.push_back("192.168.1.7:1");
  EXPECT_EQ(dialable_for({private_ones}, {.host = "192.168.1.7", .paid = true}).addresses, and_where_it_comes_from);
  EXPECT_EQ(dialable_for({{"127.0.0.1:1"}}, {.host = "127.0.0.1", .paid = false}).addresses, List{"127.0.0.1:1"});
}

}  // namespace
}  // namespace shoal
