// Which joiners the launching process dials back, how often and how many at a time.
#include "runtime/launch/dial_back.h"

#include <gtest/gtest.h>

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
  static JoinRequest request_at(const std::string& address) {
    JoinRequest request;
    request.whereabouts.addresses = {address};
    return request;
  }

  // Comes from where it says that it is.
  void check(const Remote& from, const std::string& address) {
    dial_back->check(from, request_at(address), {.host = address.substr(0, address.rfind(':')), .paid = false});
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
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_FALSE(verdicts[0].reached.ok());
  EXPECT_EQ(verdicts[0].failures, 1u);
  check(remote_of(1), "elsewhere:1");
  lab.run_for(DialBack::kPause);
  EXPECT_EQ(verdicts.size(), 1u) << "another address within the pause is another dial";
  check(remote_of(1), "elsewhere:1");
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[1].failures, 2u);
}

TEST_F(DialBackTest, WhatWasReachedHoldsForThePauseAndThoseAddressesAlone) {
  (void)lab.wire(1);
  const Remote joiner{lab.peer(1), Session::of(lab.peer(1), 1), PeerRole::kPeer};
  check(joiner, lab.address(1));
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_TRUE(verdicts[0].reached.ok());
  lab.network().close_listener(lab.address(1));
  check(joiner, lab.address(1));
  check(joiner, "nobody:1");
  lab.run_for(DialBack::kPause);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_TRUE(verdicts[1].reached.ok());
  check(joiner, lab.address(1));
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_FALSE(verdicts[2].reached.ok());
}

TEST_F(DialBackTest, OnlySoManyPeersAreDialledAtATime) {
  // Connections to a frozen host hang until the wire gives up.
  (void)lab.wire(1);
  lab.network().freeze(lab.address(1));
  for (std::uint8_t i = 1; i <= 2 * DialBack::kAtOnce; ++i) check(remote_of(i), lab.address(1));
  EXPECT_EQ(lab.network().connections(), DialBack::kAtOnce);
  lab.run_for(6s);
  EXPECT_EQ(verdicts.size(), DialBack::kAtOnce);
  EXPECT_EQ(lab.network().connections(), DialBack::kAtOnce);
  lab.run_for(6s);
  EXPECT_EQ(verdicts.size(), 2 * DialBack::kAtOnce) << "the others stood in line";
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
  EXPECT_LE(static_cast<double>(verdicts.size()), most);
  EXPECT_GE(static_cast<double>(verdicts.size()), 5 * DialBack::kPerSecond * 0.9) << "and no fewer";
}

// What a request makes us dial elsewhere costs its sender more than the host that it hits.
TEST_F(DialBackTest, ElsewhereIsDialledOnlyForWhoPaid) {
  (void)lab.wire(1);
  const Remote joiner{lab.peer(1), Session::of(lab.peer(1), 1), PeerRole::kPeer};
  dial_back->check(joiner, request_at(lab.address(1)), {.host = "198.51.100.9", .paid = false});
  EXPECT_EQ(lab.network().connections(), 0u);
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_FALSE(verdicts[0].reached.ok());
  EXPECT_EQ(verdicts[0].failures, 0u) << "nothing was tried";
  JoinRequest nowhere = request_at(lab.address(1));
  nowhere.whereabouts.addresses.clear();
  dial_back->check(joiner, nowhere, {.host = "198.51.100.9", .paid = false});
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 1u) << "nobody is taken for reached at no address";
  lab.run_for(DialBack::kPause);
  dial_back->check(joiner, request_at(lab.address(1)), {.host = "198.51.100.9", .paid = true});
  lab.run_for(1s);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_TRUE(verdicts[1].reached.ok());
}

TEST(DialableAddressesTest, OneComesFromThereOrPaysAndPrivateRangesAreForTheirOwn) {
  const std::string there = "203.0.113.5:4700", elsewhere = "198.51.100.7:4700";
  const std::vector<std::string> private_ones = {"10.1.2.3:1", "172.31.0.1:1", "192.168.1.1:1", "100.64.0.1:1",
                                                 "[fd00::1]:1"};
  const std::vector<std::string> local_ones = {"127.0.0.1:1", "169.254.169.254:1", "[::1]:1", "[fe80::1]:1",
                                               "[::ffff:127.0.0.1]:1"};
  using List = std::vector<std::string>;
  EXPECT_EQ(dialable_for({{there, elsewhere}}, {.host = "203.0.113.5", .paid = false}).addresses, List{there});
  EXPECT_EQ(dialable_for({{there}}, {.host = "::ffff:203.0.113.5", .paid = false}).addresses, List{there});
  EXPECT_EQ(dialable_for({{there, elsewhere}}, {.host = "203.0.113.5", .paid = true}).addresses,
            (List{there, elsewhere}));
  EXPECT_EQ(dialable_for({{there}}, {.host = "", .paid = false}).addresses, List{});
  for (const bool paid : {false, true}) {
    EXPECT_EQ(dialable_for({private_ones}, {.host = "203.0.113.5", .paid = paid}).addresses, List{});
    EXPECT_EQ(dialable_for({private_ones}, {.host = "", .paid = paid}).addresses, List{});
    EXPECT_EQ(dialable_for({local_ones}, {.host = "192.168.1.7", .paid = paid}).addresses, List{});
  }
  EXPECT_EQ(dialable_for({private_ones}, {.host = "192.168.1.7", .paid = true}).addresses, private_ones);
  EXPECT_EQ(dialable_for({{"127.0.0.1:1"}}, {.host = "127.0.0.1", .paid = false}).addresses, List{"127.0.0.1:1"});
}

}  // namespace
}  // namespace shoal
