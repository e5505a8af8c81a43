// Peers that pause: in order, out of order, as the last that have a stage's state, and at any moment.
#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

constexpr Duration kFree = 2s;  // after the word the device is free

class PausingTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  static SwarmOptions options(std::uint16_t stages, std::uint16_t replicas, std::uint64_t seed = 1) {
    SwarmOptions options;
    options.seed = seed;
    options.stages = stages;
    options.replicas = replicas;
    options.config = small_config(GetParam(), stages, 10'000'000);
    return options;
  }
  static bool run_until(Swarm& swarm, Duration limit, const std::function<bool()>& holds) {
    return swarm.loop().run_until_true(holds, swarm.loop().now() + limit);
  }
  static bool paused(const Swarm::HostedPeer& peer) { return peer.peer->report().phase == PeerPhase::kPaused; }
  static bool serves(const Swarm::HostedPeer& peer) { return peer.peer->report().phase == PeerPhase::kServing; }
  static std::size_t count(const Swarm& swarm, EventKind event) {
    return static_cast<std::size_t>(std::count_if(swarm.events().begin(), swarm.events().end(),
                                                  [&](const EventRecord& e) { return e.event == event; }));
  }
  static void end_well(Swarm& swarm) {
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
    swarm.finish_launch("enough");
    ASSERT_TRUE(swarm.run_to_end(300s));
    EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  }
};

TEST_P(PausingTest, APauseSecuresWhatIsHereFreesTheDeviceAndAResumedPeerServesAgainUnderItsKey) {
  Swarm swarm(options(2, 2));
  swarm.run_for(8s);
  const Swarm::HostedPeer& peer = *swarm.peers()[0];
  ASSERT_TRUE(run_until(swarm, 20s, [&] { return peer.peer->report().status.live > 0; }));
  const PeerId key = peer.key.id();
  peer.peer->set_pause("by its owner");
  EXPECT_EQ(peer.peer->report().phase, PeerPhase::kLeaving);
  ASSERT_TRUE(run_until(swarm, kFree, [&] { return !peer.pauses.empty(); }));
  EXPECT_TRUE(paused(peer));
  EXPECT_EQ(peer.peer->report().reason, "by its owner");
  EXPECT_TRUE(peer.pauses[0].in_order);
  EXPECT_EQ(peer.pauses[0].lost, 0u);
  EXPECT_FALSE(peer.pauses[0].last_holder);
  EXPECT_LE(peer.pauses[0].took, kFree);
  EXPECT_EQ(peer.peer->executor(), nullptr);
  EXPECT_EQ(peer.peer->held_state(), std::nullopt) << "another has the state";
  const std::uint64_t steps = swarm.launch()->book().committed();
  swarm.run_for(60s);
  EXPECT_TRUE(paused(peer));
  EXPECT_GT(swarm.launch()->book().committed(), steps) << "the others go on";
  EXPECT_EQ(count(swarm, EventKind::kLost), 0u);
  peer.peer->set_pause({});
  ASSERT_TRUE(run_until(swarm, 20s, [&] { return serves(peer); }));
  EXPECT_EQ(peer.peer->session().peer_tag, Session::of(key, 0).peer_tag);
  EXPECT_EQ(peer.peer->report().sessions, 2u);
  end_well(swarm);
  EXPECT_EQ(swarm.summary().faults, 0u) << "it left";
}

TEST_P(PausingTest, WhereTheAuthorityIsSilentTheDeviceIsFreeAllTheSameAndWhatIsLostIsNamed) {
  Swarm swarm(options(1, 2));
  swarm.run_for(8s);
  const Swarm::HostedPeer& peer = *swarm.peers()[0];
  const bool settles = GetParam() == RuleId::kDiloco;  // the other rule's steps are rounds
  if (settles) {
    ASSERT_TRUE(run_until(swarm, 20s, [&] { return peer.peer->report().status.settled_targets > 0; }));
  }
  swarm.network().partition("launch:1", peer.address);
  peer.peer->set_pause("by its owner");
  ASSERT_TRUE(run_until(swarm, kFree, [&] { return !peer.pauses.empty(); }));
  EXPECT_FALSE(peer.pauses[0].in_order);
  EXPECT_EQ(peer.pauses[0].lost > 0, settles);
  EXPECT_LE(peer.pauses[0].took, kFree);
  swarm.run_for(60s);
  EXPECT_TRUE(paused(peer));
  swarm.network().partition("launch:1", peer.address, false);
  peer.peer->set_pause({});
  ASSERT_TRUE(run_until(swarm, 20s, [&] { return serves(peer); }));
  EXPECT_GE(count(swarm, EventKind::kLost), settles ? 1u : 0u);
  end_well(swarm);
}

TEST_P(PausingTest, TheLastHolderKeepsTheStateAndTheRunGoesOnFromItWhenItIsBack) {
  Swarm swarm(options(2, 1));
  swarm.run_for(10s);
  const std::size_t index = swarm.peers()[0]->peer->report().stage == StageId(1) ? 0 : 1;
  const Swarm::HostedPeer& peer = *swarm.peers()[index];
  ASSERT_GT(peer.peer->report().status.version.value, 0u);
  peer.peer->set_pause("outside 22-8");
  ASSERT_TRUE(run_until(swarm, kFree, [&] { return !peer.pauses.empty(); }));
  EXPECT_TRUE(peer.pauses[0].last_holder);
  EXPECT_EQ(peer.peer->executor(), nullptr);
  ASSERT_TRUE(peer.peer->held_state().has_value());
  const Version held = peer.peer->held_state()->second;
  swarm.run_for(10s);
  EXPECT_EQ(swarm.peers()[1 - index]->peer->report().reason, "waiting: stage 1 has no peer");
  swarm.run_for(std::chrono::hours(2));
  peer.peer->set_pause({});
  ASSERT_TRUE(run_until(swarm, 20s, [&] { return serves(peer); }));
  EXPECT_EQ(peer.peer->report().status.version, held) << "the stage did not go back";
  swarm.run_for(10s);
  EXPECT_GT(peer.peer->report().status.version, held);
  end_well(swarm);
}

// As with equal hours everywhere: of those that go at once, the last one keeps the state.
TEST_P(PausingTest, WhenAllHoldersPauseAtOnceOneOfThemKeepsTheState) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Swarm swarm(options(1, 3, seed));
    swarm.run_for(8s + std::chrono::milliseconds(137 * seed));
    const auto& peers = swarm.peers();
    const Version before = peers[0]->peer->report().status.version;
    ASSERT_GT(before.value, 0u);
    for (const auto& peer : peers) peer->peer->set_pause("outside 22-8");
    ASSERT_TRUE(run_until(swarm, kFree, [&] {
      return std::ranges::all_of(peers, [](const auto& peer) { return !peer->pauses.empty(); });
    }));
    EXPECT_TRUE(std::ranges::any_of(peers, [](const auto& peer) { return peer->peer->held_state().has_value(); }));
    for (const auto& peer : peers) peer->peer->set_pause({});
    ASSERT_TRUE(run_until(swarm, 60s,
                          [&] { return std::ranges::all_of(peers, [](const auto& peer) { return serves(*peer); }); }));
    EXPECT_GE(peers[0]->peer->report().status.version, before) << "the stage did not go back";
    end_well(swarm);
  }
}

TEST_P(PausingTest, APauseBetweenTwoSessionsOfTheLastHolderKeepsTheState) {
  Swarm swarm(options(1, 1));
  swarm.run_for(10s);
  const Swarm::HostedPeer& peer = *swarm.peers()[0];
  const Version before = peer.peer->report().status.version;
  ASSERT_GT(before.value, 0u);
  swarm.network().partition("launch:1", peer.address);
  swarm.run_for(30s);
  swarm.network().partition("launch:1", peer.address, false);
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return peer.peer->report().phase == PeerPhase::kRestarting; }));
  peer.peer->set_pause("by its owner");
  ASSERT_TRUE(run_until(swarm, kFree, [&] { return !peer.pauses.empty(); }));
  EXPECT_TRUE(peer.pauses[0].last_holder);
  EXPECT_TRUE(peer.peer->held_state().has_value());
  peer.peer->set_pause({});
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return serves(peer); }));
  EXPECT_GE(peer.peer->report().status.version, before) << "the stage did not go back";
  end_well(swarm);
}

TEST_P(PausingTest, AResumeBeforeThePauseIsThereBringsTheNextSessionAtOnce) {
  Swarm swarm(options(1, 2));
  swarm.run_for(8s);
  const Swarm::HostedPeer& peer = *swarm.peers()[0];
  peer.peer->set_pause("by its owner");
  peer.peer->set_pause({});
  EXPECT_TRUE(peer.peer->report().pause.has_value());
  ASSERT_TRUE(run_until(swarm, 20s, [&] { return serves(peer) && peer.peer->report().sessions == 2; }));
  EXPECT_FALSE(peer.peer->report().pause.has_value());
  EXPECT_TRUE(peer.pauses.empty());
  end_well(swarm);
}

TEST_P(PausingTest, APeerThatPausesOrRestsMayBeEndedAndOneThatLeavesDoesNotPause) {
  Swarm swarm(options(1, 4));
  swarm.run_for(8s);
  const auto& peers = swarm.peers();
  peers[0]->peer->set_pause("by its owner");
  peers[0]->peer->leave();
  peers[1]->peer->set_pause("by its owner");
  peers[2]->peer->leave();
  peers[2]->peer->set_pause("by its owner");
  ASSERT_TRUE(run_until(swarm, kFree, [&] { return paused(*peers[1]); }));
  peers[1]->peer->leave();
  swarm.run_for(40s);
  for (const std::size_t index : {0, 1, 2}) {
    EXPECT_TRUE(peers[index]->finished) << index;
    EXPECT_FALSE(peers[index]->error.has_value()) << index;
  }
  EXPECT_TRUE(peers[0]->pauses.empty());
  EXPECT_TRUE(peers[2]->pauses.empty());
  end_well(swarm);
}

// Before the manifest, while it joins, fetches, serves, pauses and comes back, in rounds and between them.
TEST_P(PausingTest, AtAnyMomentAPeerMayPauseAndComeBack) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Swarm swarm(options(2, 2, seed));
    Rng rng(seed);
    for (int turn = 0; turn < 12; ++turn) {
      const Swarm::HostedPeer& peer = *swarm.peers()[rng.below(swarm.peers().size())];
      swarm.run_for(std::chrono::milliseconds(1 + rng.below(turn < 6 ? 300 : 3000)));
      peer.peer->set_pause("turn " + std::to_string(turn));
      if (rng.below(3) > 0) {
        const std::size_t pauses = peer.pauses.size();
        ASSERT_TRUE(run_until(swarm, kFree, [&] { return peer.pauses.size() > pauses; })) << turn;
        swarm.run_for(std::chrono::milliseconds(rng.below(3000)));
      } else {
        swarm.run_for(std::chrono::milliseconds(rng.below(1500)));
      }
      EXPECT_EQ(check_counting(swarm), std::vector<std::string>{}) << turn;
      peer.peer->set_pause({});
    }
    ASSERT_TRUE(run_until(swarm, 60s, [&] {
      return std::ranges::all_of(swarm.peers(), [](const auto& peer) { return serves(*peer); });
    }));
    swarm.run_for(5s);
    end_well(swarm);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, PausingTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                         [](const auto& rule) { return std::string(name_of(rule.param)); });

}  // namespace
}  // namespace shoal
