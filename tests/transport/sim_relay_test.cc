// Relays of the virtual network: whom they join, what they carry, and what becomes of both.
#include "sim/sim_relay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/transport/sim_lab.h"
#include "transport/limits.h"

namespace shoal {
namespace {

class SimRelayTest : public testing::Test {
 protected:
  static constexpr const char* kRelay = "relay:443";
  static constexpr const char* kVia = "via/relay:443";

  void SetUp() override { network().relays().add(kRelay, "relay:1", 1e6); }
  // Ends that nobody dials, called at the relay.
  void start(int ends) {
    for (int i = 0; i < ends; ++i) {
      lab.wire(i).set_listener(&log[i]);
      network().nats().set(lab.address(i), sim_firewall());
      lab.wire(i).be_called_at({kRelay});
    }
    lab.run_for(1s);
  }
  SimNetwork& network() { return lab.network(); }
  SimRelay& relay() { return *network().relays().at(kRelay); }
  bool until(const std::function<bool()>& done, Duration limit = 60s) { return lab.run_until(done, limit); }
  // What the caller is told; none: it stands.
  std::optional<ErrorCode> outcome(int from, int to, const Address& address = kVia) {
    log[from] = WireLog{};
    const ConnectionId id = lab.wire(from).connect(lab.peer(to), address);
    const auto is_it = [&](const auto& said) { return said.connection == id; };
    EXPECT_TRUE(until(
        [&] { return std::ranges::any_of(log[from].ups, is_it) || std::ranges::any_of(log[from].downs, is_it); }));
    const auto down = std::ranges::find_if(log[from].downs, is_it);
    return down == log[from].downs.end() ? std::nullopt : std::optional(down->cause.code);
  }
  ConnectionId dialled(int end) const { return log[end].ups.back().connection; }
  bool send(int from, Lane lane, std::size_t bytes) {
    return lab.wire(from).send(dialled(from), lane, numbered_bytes(bytes, 1)).ok();
  }

  SimLab lab;
  WireLog log[4];
};

TEST_F(SimRelayTest, TwoThatNobodyDialsMeetOverBothLegs) {
  SimHostShape far;
  far.latency = 100ms;
  network().set_shape(lab.address(1), far);
  start(2);
  EXPECT_EQ(outcome(0, 1, lab.address(1)), ErrorCode::kTimeout);
  const TimePoint begun = lab.loop().now();
  ASSERT_EQ(outcome(0, 1), std::nullopt);
  EXPECT_LT(lab.loop().now() - begun, 1s);
  const TimePoint up = lab.loop().now();
  ASSERT_TRUE(send(0, Lane::kControl, 8));
  ASSERT_TRUE(until([&] { return log[1].messages.size() == 1; }));
  EXPECT_NEAR(seconds_of(lab.loop().now() - up), 0.005 + 0.010 + 0.050, 0.001);
  ASSERT_EQ(network().relays().joined().size(), 1u);
  EXPECT_EQ(network().relays().joined()[0].caller, lab.peer(0));
  EXPECT_TRUE(network().nats().answered().empty()) << "neither was dialled";
}

TEST_F(SimRelayTest, ACallThatTheRelayDoesNotPassOnIsUnreachableAndNothingOfItStays) {
  start(2);
  (void)lab.wire(2);
  EXPECT_EQ(outcome(0, 2), ErrorCode::kUnreachable) << "it is not registered";
  EXPECT_EQ(outcome(0, 1, "via/nobody:443"), ErrorCode::kUnreachable);
  network().relays().set_listed({}, [&](const PeerId& caller, const PeerId&) { return caller != lab.peer(0); });
  EXPECT_EQ(outcome(0, 1), ErrorCode::kUnreachable) << "it is not on the list";
  EXPECT_EQ(outcome(1, 0), std::nullopt);
  lab.wire(1).disconnect(dialled(1));
  network().relays().set_listed({}, {});
  network().freeze(lab.address(1));
  EXPECT_EQ(outcome(0, 1), ErrorCode::kUnreachable) << "it does not answer";
  network().resume(lab.address(1));
  network().block("relay:1", lab.address(0));
  EXPECT_EQ(outcome(0, 1), ErrorCode::kTimeout) << "the relay does not";
  network().block("relay:1", lab.address(0), false);
  lab.wire(1).be_called_at({});
  EXPECT_EQ(outcome(0, 1), ErrorCode::kUnreachable) << "it is called there no more";
  network().relays().end(kRelay);
  EXPECT_EQ(outcome(1, 0), ErrorCode::kUnreachable) << "the relay is dead";
  EXPECT_EQ(network().connections(), 0u);
}

TEST_F(SimRelayTest, ARelayJoinsSoManyPairsOfOnePeerUnlessStrangersMayCallIt) {
  start(2);
  for (std::size_t i = 0; i < SimRelay::kPairsOfPeerMax; ++i) EXPECT_EQ(outcome(0, 1), std::nullopt);
  EXPECT_EQ(outcome(1, 0), ErrorCode::kUnreachable);
  start(4);
  EXPECT_EQ(outcome(2, 1), ErrorCode::kUnreachable);
  EXPECT_EQ(outcome(2, 3), std::nullopt);
  network().relays().set_listed(lab.peer(1), {});
  EXPECT_EQ(outcome(2, 1), std::nullopt);
}

TEST_F(SimRelayTest, WhereOnlyPort443IsLetOutARelayThereIsReached) {
  start(2);
  network().relays().add("other:4700", "other:1", 0);
  network().nats().set(lab.address(0), {.kind = NatKind::kOnly443});
  EXPECT_EQ(outcome(0, 1), std::nullopt);
  EXPECT_EQ(outcome(0, 1, "via/other:4700"), ErrorCode::kTimeout);
}

TEST_F(SimRelayTest, AllShareTheRateInTurnsAndControlGoesFirst) {
  start(4);
  ASSERT_EQ(outcome(0, 1), std::nullopt);
  ASSERT_EQ(outcome(2, 3), std::nullopt);
  const std::uint64_t before = relay().carried();
  for (int i = 0; i < 12; ++i)
    for (const int from : {0, 2}) ASSERT_TRUE(send(from, Lane::kBulk, 256u << 10));
  lab.run_for(1s);
  const TimePoint begun = lab.loop().now();
  ASSERT_TRUE(send(0, Lane::kControl, 1000));
  ASSERT_TRUE(until([&] { return log[1].messages.size() > 0 && log[1].messages.back().lane == Lane::kControl; }));
  EXPECT_LT(lab.loop().now() - begun, 50ms);
  lab.run_for(2s);
  EXPECT_NEAR(static_cast<double>(relay().carried() - before), 3e6, 1e5);
  EXPECT_NEAR(static_cast<double>(log[1].messages.size()), static_cast<double>(log[3].messages.size()) + 1, 1);
  EXPECT_LE(static_cast<double>(relay().carried()), relay().allowed());
  relay().set_rate(0);
  ASSERT_TRUE(until([&] { return log[1].messages.size() == 13 && log[3].messages.size() == 12; }, 1s));
}

TEST_F(SimRelayTest, ARelayThatEndsTakesWhatItJoinedAlongAndIsCalledAtAgainWhenItIsBack) {
  start(2);
  for (const bool silent : {false, true}) {
    ASSERT_EQ(outcome(0, 1), std::nullopt);
    const std::size_t messages = log[1].messages.size(), downs = log[1].downs.size();
    ASSERT_TRUE(send(0, Lane::kBulk, 200'000));
    lab.run_for(50ms);
    network().relays().end(kRelay, silent);
    lab.run_for(10s);
    EXPECT_EQ(log[0].downs.size(), silent ? 0u : 1u);
    EXPECT_EQ(log[1].downs.size(), downs + (silent ? 0 : 1));
    EXPECT_EQ(log[1].messages.size(), messages);
    network().relays().add(kRelay, "relay:1", 1e6);
    EXPECT_EQ(outcome(0, 1), ErrorCode::kUnreachable) << "nobody registered again yet";
    lab.run_for(1s);
  }
  EXPECT_EQ(outcome(0, 1), std::nullopt);
}

TEST_F(SimRelayTest, ARelayDiesAndStandsStillWithTheProcessThatItIsPartOf) {
  start(2);
  const auto process = network().make_wire(lab.peer(7), "relay:1");
  ASSERT_EQ(outcome(0, 1), std::nullopt);
  network().freeze("relay:1");
  ASSERT_TRUE(send(0, Lane::kControl, 8));
  lab.run_for(5s);
  EXPECT_TRUE(log[1].messages.empty());
  network().resume("relay:1");
  ASSERT_TRUE(until([&] { return log[1].messages.size() == 1; }, 1s));
  network().kill("relay:1");
  lab.run_for(1s);
  EXPECT_EQ(log[0].downs.size(), 1u);
  EXPECT_FALSE(relay().lives());
}

TEST_F(SimRelayTest, ARelayThatStallsPassesNothingOnAndLosesNothing) {
  start(2);
  ASSERT_EQ(outcome(0, 1), std::nullopt);
  relay().set_stalled(true);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(send(0, Lane::kControl, 100));
  lab.run_for(30s);
  EXPECT_TRUE(log[1].messages.empty());
  EXPECT_EQ(outcome(1, 0), ErrorCode::kUnreachable) << "nor calls";
  relay().set_stalled(false);
  ASSERT_TRUE(until([&] { return log[1].messages.size() == 5; }, 1s));
}

TEST_F(SimRelayTest, WhatIsBlockedOnOneLegWaitsAndAPartitionOfTheTwoStopsNothing) {
  start(2);
  ASSERT_EQ(outcome(0, 1), std::nullopt);
  network().partition(lab.address(0), lab.address(1));
  ASSERT_TRUE(send(0, Lane::kControl, 8));
  ASSERT_TRUE(until([&] { return log[1].messages.size() == 1; }, 1s));
  network().block("relay:1", lab.address(1));
  ASSERT_TRUE(send(0, Lane::kControl, 8));
  lab.run_for(5s);
  EXPECT_EQ(log[1].messages.size(), 1u);
  network().block("relay:1", lab.address(1), false);
  ASSERT_TRUE(until([&] { return log[1].messages.size() == 2; }, 1s));
}

TEST_F(SimRelayTest, ARegistrationThatARouterForgotStandsAgainOnceItWasNoticed) {
  start(2);
  network().flush(lab.address(1), true);
  EXPECT_EQ(outcome(0, 1), ErrorCode::kUnreachable);
  lab.run_for(SimRelay::kRegisterAgain);
  EXPECT_EQ(outcome(0, 1), std::nullopt);
  network().flush(lab.address(1));
  lab.run_for(SimRelay::kSilenceMax / 2);
  EXPECT_EQ(outcome(0, 1), ErrorCode::kUnreachable);
  EXPECT_EQ(outcome(1, 0), std::nullopt) << "it still calls";
  lab.run_for(SimRelay::kSilenceMax / 2);
  EXPECT_EQ(outcome(0, 1), std::nullopt);
}

}  // namespace
}  // namespace shoal
