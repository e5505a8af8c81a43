// The plan of faults, what applies them, and the judgement that a healed swarm goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/fault_strikes.h"
#include "sim/liveness.h"
#include "sim/scenario.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::HasSubstr;

SwarmOptions options_for(RuleId rule, std::uint64_t seed) {
  SwarmOptions options;
  options.seed = seed;
  options.config = small_config(rule, options.stages, 100'000);
  options.dht = true;
  return options;
}

class FaultPlanTest : public Quiet<testing::Test> {};

TEST_F(FaultPlanTest, ATableRowStandsForEveryKind) {
  ASSERT_EQ(fault_table().size(), static_cast<std::size_t>(FaultKind::kCount));
  for (const FaultRow& row : fault_table()) {
    EXPECT_EQ(row_of(row.kind).name, row.name);
    EXPECT_LE(row.shortest, row.longest) << row.name;
    EXPECT_LE(row.longest, row.unbounded) << row.name;
    EXPECT_LE(row.strongest, row.beyond) << row.name;
  }
}

TEST_F(FaultPlanTest, TheSameSeedDrawsTheSamePlanAndEveryKindIsDrawn) {
  std::set<FaultKind> drawn;
  std::size_t faults = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    FaultOptions options;
    options.nat = seed % 2 == 0;
    options.relay = seed % 4 == 0;
    const auto one = draw_faults(options, 6, Rng(seed)), two = draw_faults(options, 6, Rng(seed));
    ASSERT_EQ(one.size(), two.size());
    faults += one.size();
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].at, two[i].at);
      EXPECT_EQ(one[i].kind, two[i].kind);
      EXPECT_NE(one[i].who, one[i].other);
      EXPECT_TRUE(options.nat || one[i].kind < FaultKind::kNatFlush) << "an old seed keeps its plan";
      EXPECT_TRUE(options.relay || one[i].kind < FaultKind::kRelayDeath) << "an old seed keeps its plan";
      EXPECT_LE(one[i].strength, row_of(one[i].kind).strongest);
      EXPECT_LE(one[i].lasts, row_of(one[i].kind).longest);
      drawn.insert(one[i].kind);
    }
  }
  EXPECT_GE(faults, 1000u) << "ten a seed";
  EXPECT_EQ(drawn.size(), fault_table().size());
}

TEST_F(FaultPlanTest, TheLastHolderOfAStageIsNotKilled) {
  Swarm swarm(options_for(RuleId::kDiloco, 1));
  FaultStrikes strikes(swarm, Rng(1));
  // Two of one stage, at the same version.
  const auto held = [&](std::size_t i) { return swarm.peers()[i]->peer->held_state(); };
  std::optional<std::pair<std::size_t, std::size_t>> pair;
  for (int tries = 0; tries < 300 && !pair; ++tries) {
    swarm.run_for(100ms);
    for (std::size_t a = 0; a < swarm.peers().size(); ++a)
      for (std::size_t b = a + 1; b < swarm.peers().size(); ++b)
        if (held(a) && held(a) == held(b)) pair = std::pair(a, b);
  }
  ASSERT_TRUE(pair);
  ASSERT_TRUE(strikes.begin({.kind = FaultKind::kKill, .lasts = 30s, .who = pair->first}));
  EXPECT_FALSE(strikes.begin({.kind = FaultKind::kMachineDeath, .lasts = 1s, .who = pair->second}));
}

TEST_F(FaultPlanTest, AMachineThatDiesWhileItDialsIsForgotten) {  // seed 53 of both rules
  Swarm swarm(options_for(RuleId::kDiloco, 53));
  swarm.run_for(3s);
  swarm.restart_peer(0);
  swarm.run_for(5ms);  // its first connections are on their way
  swarm.kill_peer(0, true);
  swarm.run_for(20s);
  EXPECT_FALSE(swarm.peers()[0]->alive);
}

TEST_F(FaultPlanTest, WhoWaitsForWhomIsToldOfASwarmThatStandsStill) {
  SwarmOptions options = options_for(RuleId::kDiloco, 1);
  options.stages = 2;
  options.replicas = 1;
  options.config = small_config(RuleId::kDiloco, 2, 100'000);
  Swarm swarm(std::move(options));
  swarm.run_for(8s);
  swarm.freeze_peer(1);
  swarm.run_for(60s);
  const std::vector<std::string> graph = waits_for_graph(swarm);
  EXPECT_THAT(graph, Contains(HasSubstr("launch waits for a server")));
  EXPECT_THAT(graph, Contains(HasSubstr("frozen")));
  EXPECT_THAT(graph, Contains(HasSubstr("microbatch ")));
}

TEST_F(FaultPlanTest, ALastingMachineDeathLeavesASwarmThatGoesOn) {
  FaultOptions faults;
  faults.only = {FaultKind::kMachineDeath};
  faults.lasting = 1;
  const ScenarioResult result = run_scenario(options_for(RuleId::kDiloco, 3), faults);
  EXPECT_TRUE(result.broken.empty()) << result.broken.front();
  EXPECT_GT(result.faults, 0u);
}

class AllFaultsTest : public testing::TestWithParam<RuleId> {};
INSTANTIATE_TEST_SUITE_P(Rules, AllFaultsTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                         [](const auto& i) { return i.param == RuleId::kAllreduce ? "Allreduce" : "Diloco"; });

TEST_P(AllFaultsTest, CountingHoldsAndTheSwarmGoesOn) {
  set_log_level(LogLevel::kError);
  ScenarioResult total;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SwarmOptions options = options_for(GetParam(), seed);
    if (seed % 4 == 0) make_tight(options);
    if (seed % kCompactEvery == 0) compact_often(options);
    const ScenarioResult result = run_scenario(std::move(options), {});
    EXPECT_TRUE(result.broken.empty()) << "seed " << seed << ": " << result.broken.front();
    total.add(result);
  }
  EXPECT_GE(total.faults, 120u);
  EXPECT_GE(total.fault_kinds.size(), 20u);
}

}  // namespace
}  // namespace shoal
