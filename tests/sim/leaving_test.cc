// Peers that go: with work under way, together, and while they are about to join again.
#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

class LeavingTest : public Quiet<testing::Test> {
 protected:
  static SwarmOptions options(std::uint16_t stages, std::uint16_t replicas, std::uint64_t microbatches = 100'000) {
    SwarmOptions options;
    options.stages = stages;
    options.replicas = replicas;
    options.config = small_config(RuleId::kDiloco, stages, microbatches);
    return options;
  }
  static bool heard(const Swarm::HostedPeer& peer, std::string_view words) {
    return std::any_of(peer.notices.begin(), peer.notices.end(),
                       [&](const std::string& line) { return line.find(words) != std::string::npos; });
  }
  static std::size_t count(const Swarm& swarm, EventKind event) {
    return static_cast<std::size_t>(std::count_if(swarm.events().begin(), swarm.events().end(),
                                                  [&](const EventRecord& e) { return e.event == event; }));
  }
  static std::vector<Swarm::HostedPeer*> of_stage(const Swarm& swarm, std::uint16_t stage) {
    std::vector<Swarm::HostedPeer*> result;
    for (const auto& peer : swarm.peers())
      if (peer->peer->report().stage == StageId(stage)) result.push_back(peer.get());
    return result;
  }
};

TEST_F(LeavingTest, WhatALeaverSettledGetsItsRoundAndNothingIsLost) {
  Swarm swarm(options(1, 2, 400));
  swarm.run_for(5s);
  Peer& leaver = *swarm.peers()[0]->peer;
  while (leaver.report().status.settled_targets == 0) swarm.run_for(1ms);
  leaver.leave();
  EXPECT_EQ(leaver.report().phase, PeerPhase::kLeaving);
  EXPECT_NE(leaver.report().reason.find("open entries"), std::string::npos) << leaver.report().reason;
  swarm.run_for(20s);
  EXPECT_TRUE(swarm.peers()[0]->finished);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(swarm.summary().lost, 0u);
  EXPECT_EQ(count(swarm, EventKind::kLost), 0u);
}

TEST_F(LeavingTest, OfTwoReplicasThatLeaveTogetherTheLastStaysUntilAnotherHoldsTheState) {
  Swarm swarm(options(2, 2));
  swarm.run_for(10s);
  const auto leavers = of_stage(swarm, 1);
  ASSERT_EQ(leavers.size(), 2u);
  for (const auto* leaver : leavers) ASSERT_GT(leaver->peer->report().status.version.value, 0u);
  for (const auto* leaver : leavers) leaver->peer->leave();
  swarm.run_for(60s);
  ASSERT_NE(leavers[0]->finished, leavers[1]->finished) << "one after the other";
  const Swarm::HostedPeer& last = *leavers[leavers[0]->finished ? 1 : 0];
  EXPECT_TRUE(heard(last, "last holder of stage 1"));
  EXPECT_NE(last.peer->report().reason.find("another peer to take"), std::string::npos) << last.peer->report().reason;
  const auto above = of_stage(swarm, 0);
  EXPECT_TRUE(std::any_of(above.begin(), above.end(), [](const auto* peer) {
    return peer->peer->report().reason == "waiting: stage 1 has no peer";
  }));
  const std::size_t joiner = swarm.add_peer();
  swarm.run_for(40s);
  EXPECT_TRUE(last.finished);
  EXPECT_EQ(swarm.peers()[joiner]->peer->report().phase, PeerPhase::kServing);
  EXPECT_GT(swarm.peers()[joiner]->peer->report().status.version.value, 0u) << "it fetched the state";
  EXPECT_EQ(count(swarm, EventKind::kLost), 0u);
}

TEST_F(LeavingTest, TheLastHolderOfAStageIsGoneIn30SecondsAndItsDiskHasTheNewestState) {
  for (const bool launch_is_away : {false, true}) {
    SwarmOptions with_disks = options(2, 1);
    with_disks.checkpoints = true;
    with_disks.config.checkpoint.every_s = 3600;  // nothing is written by itself
    Swarm swarm(with_disks);
    swarm.run_for(10s);
    Swarm::HostedPeer& last = *of_stage(swarm, 1).at(0);
    ASSERT_GT(last.peer->report().status.version.value, 0u);
    if (launch_is_away) swarm.network().partition("launch:1", last.address);
    swarm.run_for(2s);
    last.peer->leave();
    swarm.run_for(30s);
    EXPECT_TRUE(last.finished);
    const PeerReport report = last.peer->report();
    ASSERT_TRUE(report.on_disk);
    EXPECT_EQ(report.on_disk->version, report.status.version);
  }
}

TEST_F(LeavingTest, WhoStaysSaysWhichStageHasNobodyAheadAndBehind) {
  for (const std::uint16_t gone : {0, 1}) {
    Swarm swarm(options(2, 1));
    swarm.run_for(8s);
    const std::size_t victim = swarm.peers()[0]->peer->report().stage == StageId(gone) ? 0 : 1;
    const Peer& other = *swarm.peers()[1 - victim]->peer;
    EXPECT_EQ(other.report().reason, "");
    swarm.kill_peer(victim);
    swarm.run_for(30s);
    EXPECT_EQ(other.report().reason, "waiting: stage " + std::to_string(gone) + " has no peer");
  }
}

TEST_F(LeavingTest, CtrlCWhileASessionIsTakenDownEndsThePeer) {
  Swarm swarm(options(1, 2));
  swarm.run_for(8s);
  const auto& peer = *swarm.peers()[0];
  ASSERT_GT(peer.peer->report().status.version.value, 0u) << "it keeps its state over the fence, which takes a while";
  swarm.network().partition("launch:1", peer.address);
  swarm.run_for(15s);
  swarm.network().partition("launch:1", peer.address, false);
  while (!heard(peer, "joining again") && swarm.loop().now() < TimePoint{} + 120s) swarm.run_for(50us);
  ASSERT_EQ(peer.peer->report().sessions, 1u) << "the next one has not begun";
  peer.peer->leave();
  swarm.run_for(5s);
  EXPECT_TRUE(peer.finished);
  EXPECT_FALSE(peer.error.has_value());
}

// As at a second Ctrl-C: the process's objects go in their order, and the device finishes what it has. Judged by
// AddressSanitizer; without it, a rule that is gone is called here.
TEST_F(LeavingTest, ADeviceJobOutlivesItsPeer) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SwarmOptions shape = options(1, 4);
    shape.seed = seed;
    shape.pace.round = 40ms;
    Swarm swarm(std::move(shape));
    swarm.run_for(4s + std::chrono::milliseconds(13 * seed));
    for (const auto& peer : swarm.peers()) {
      while (!peer->peer->report().status.device_busy) swarm.run_for(1ms);
      peer->peer.reset();
      swarm.run_for(200ms);
    }
  }
}

}  // namespace
}  // namespace shoal
