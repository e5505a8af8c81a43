// Swarms of which some peers cannot be dialled, and whose routers forget.
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/checkers.h"
#include "sim/liveness.h"
#include "sim/scenario.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

SwarmOptions reach_options(RuleId rule, std::uint64_t seed, std::uint64_t microbatches, double unreachable = 0) {
  SwarmOptions options;
  options.seed = seed;
  options.unreachable = unreachable;
  options.config = small_config(rule, options.stages, microbatches);
  return options;
}

class ReachTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kError); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }
  static bool serves(const Swarm& swarm, std::size_t peer) {
    return swarm.peers()[peer]->peer->report().phase == PeerPhase::kServing;
  }
  static std::uint64_t committed(const Swarm& swarm) { return swarm.launch()->book().committed(); }
  // It commits more, nothing is counted twice, and the run comes to its end.
  static void expect_goes_on(Swarm& swarm) {
    const std::uint64_t before = committed(swarm);
    swarm.run_for(30s);
    EXPECT_EQ(first_broken(check_counting(swarm)), "");
    EXPECT_GE(committed(swarm), before + kLiveMicrobatches);
    for (std::size_t i = 0; i < swarm.peers().size(); ++i) EXPECT_TRUE(serves(swarm, i)) << i;
    swarm.finish_launch("enough");
    ASSERT_TRUE(swarm.run_to_end(120s));
    EXPECT_EQ(first_broken(check_end(swarm)), "");
  }
};

TEST_F(ReachTest, AllServeWhereOneOfEachStageCanBeDialled) {
  Swarm swarm(reach_options(RuleId::kDiloco, 1, 100'000, 0.6));
  swarm.run_for(70s);
  std::set<std::string> homes;
  for (std::size_t i = 0; i < swarm.peers().size(); ++i) {
    const SimNat nat = nat_of(swarm.options(), i);
    EXPECT_EQ(nat.dialable(), i < swarm.options().stages) << "one of each stage can";
    homes.insert(nat.home);
    EXPECT_TRUE(serves(swarm, i)) << i;
  }
  EXPECT_GT(homes.size(), 1u);
  EXPECT_EQ(first_broken(check_counting(swarm)), "");
  EXPECT_GT(committed(swarm), 100u);
  swarm.finish_launch("enough");
  ASSERT_TRUE(swarm.run_to_end(60s));
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

TEST_F(ReachTest, ASwarmGoesOnWhenARouterForgetsAMembersConnections) {
  for (const RuleId rule : {RuleId::kAllreduce, RuleId::kDiloco}) {
    for (const bool resets : {false, true}) {
      Swarm swarm(reach_options(rule, 3, 100'000));
      swarm.run_for(5s);
      for (int flush = 0; flush < 3; ++flush) {
        swarm.network().flush(swarm.peers()[1]->address, resets);
        swarm.run_for(4s);
        EXPECT_EQ(first_broken(check_counting(swarm)), "");
      }
      expect_goes_on(swarm);
    }
  }
}

TEST_F(ReachTest, ASwarmGoesOnWhenARouterHasANewAddress) {
  Swarm swarm(reach_options(RuleId::kDiloco, 4, 100'000));
  SimNetwork& network = swarm.network();
  swarm.run_for(5s);
  const Address& member = swarm.peers()[2]->address;
  network.nats().set(member, sim_home("home", "192.168.1.2:1"));
  swarm.run_for(3s);
  EXPECT_TRUE(serves(swarm, 2)) << "what stands goes on";
  ASSERT_TRUE(network.renumber(member));
  swarm.run_for(20s);
  EXPECT_EQ(first_broken(check_counting(swarm)), "");
  network.nats().set(member, {});
  swarm.run_for(20s);
  expect_goes_on(swarm);
}

TEST_F(ReachTest, RoutersThatForgetAmongReachThatIsLostAndWonBreakNothing) {
  FaultOptions routers;
  routers.only = {FaultKind::kNatFlush, FaultKind::kNatRenumber, FaultKind::kReachLost, FaultKind::kReachWon};
  ScenarioResult total;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const RuleId rule = seed % 2 == 0 ? RuleId::kDiloco : RuleId::kAllreduce;
    const ScenarioResult result = run_scenario(reach_options(rule, seed, 100'000, seed % 4 < 2 ? 0 : 0.6), routers);
    EXPECT_EQ(first_broken(result.broken), "") << "seed " << seed;
    total.add(result);
  }
  EXPECT_EQ(total.fault_kinds.size(), routers.only.size());
}

TEST_F(ReachTest, AllKindsOfFaultsBreakNothingWhereSomeCannotBeDialled) {
  FaultOptions all;
  all.nat = true;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const RuleId rule = seed % 2 == 0 ? RuleId::kDiloco : RuleId::kAllreduce;
    SwarmOptions options = reach_options(rule, seed, 100'000, 0.6);
    options.dht = true;
    const ScenarioResult result = run_scenario(std::move(options), all);
    EXPECT_EQ(first_broken(result.broken), "") << "seed " << seed;
  }
}

TEST_F(ReachTest, ARunThatNobodyCanServeIsNotExpectedToGoOnAndEnds) {
  const ScenarioResult result = run_scenario(reach_options(RuleId::kDiloco, 1, 100'000, 1), {});
  EXPECT_EQ(first_broken(result.broken), "");
}

}  // namespace
}  // namespace shoal
