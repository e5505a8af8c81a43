// Swarms whose relay joins members that nobody can dial, and launching processes at home.
#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "sim/scenario.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

SwarmOptions relay_options(RuleId rule, std::uint64_t microbatches, double unreachable) {
  SwarmOptions options;
  options.reach.unreachable = unreachable;
  options.reach.relay_bytes_per_second = kSimRelayBytesPerSecond;
  options.config = small_config(rule, options.stages, microbatches);
  return options;
}

class RelayTest : public Quiet<testing::Test> {
 protected:
  static SimRelay& relay(Swarm& swarm) { return *swarm.network().relays().at(relay_of(swarm.options())); }
  static void expect_whole(Swarm& swarm) {
    EXPECT_EQ(first_broken(check_end(swarm)), "");
    EXPECT_EQ(sessions_over(swarm), 0u);
    for (const SimEvent& event : swarm.events())
      EXPECT_EQ(event.cause.find("cannot exchange"), std::string::npos) << event.cause;
  }
};

// A symmetric router differs here in nothing from another one that answers no dial.
TEST_F(RelayTest, TwoBehindSymmetricRoutersWhichAreAloneInNeighbouringStagesFinishARun) {
  for (const RuleId rule : {RuleId::kAllreduce, RuleId::kDiloco}) {
    SwarmOptions options = relay_options(rule, 200, 1);
    options.stages = 2;
    options.replicas = 1;
    options.config = small_config(rule, 2, 200);
    Swarm swarm(std::move(options));
    ASSERT_TRUE(swarm.run_to_end(300s));
    EXPECT_GE(swarm.summary().committed, 200u);
    EXPECT_GT(relay(swarm).carried(), 0u);
    expect_whole(swarm);
  }
}

TEST_F(RelayTest, ASwarmThatNobodyCanDialTakesPartInRoundsAndEnds) {
  for (const RuleId rule : {RuleId::kAllreduce, RuleId::kDiloco}) {
    Swarm swarm(relay_options(rule, 400, 1));
    ASSERT_TRUE(swarm.run_to_end(600s));
    EXPECT_GE(swarm.summary().committed, 400u);
    std::size_t whole = 0;
    for (const SimEvent& event : swarm.events())
      whole += event.event == EventKind::kRoundCommit && event.secured->size() == swarm.options().replicas;
    EXPECT_GT(whole, 5u) << "rounds of all members";
    expect_whole(swarm);
  }
}

TEST_F(RelayTest, ARunIsLaunchedFromHomeAndItsRelayCarriesWordsAlone) {
  for (const double unreachable : {0.0, 0.6}) {
    SwarmOptions options = relay_options(RuleId::kDiloco, 1'000'000, unreachable);
    options.reach.home_launch = true;
    options.dht = true;
    Swarm swarm(std::move(options));
    std::uint64_t bulk = 0;
    swarm.network().set_watch([&](const Address& from, Lane lane, const Bytes&) {
      bulk += from == kSimLaunchAddress && lane == Lane::kBulk;
    });
    swarm.run_for(60s);
    EXPECT_EQ(first_broken(check_counting(swarm)), "");
    EXPECT_GT(swarm.launch()->book().committed(), 100u);
    swarm.finish_launch("enough");
    ASSERT_TRUE(swarm.run_to_end(120s));
    EXPECT_GT(relay(swarm).carried(), 0u);
    expect_whole(swarm);
  }
}

TEST_F(RelayTest, ALaunchAtHomeComesBackAndSoDoesItsRelay) {
  SwarmOptions options = relay_options(RuleId::kDiloco, 1'000'000, 0);
  options.reach.home_launch = true;
  Swarm swarm(std::move(options));
  swarm.run_for(10s);
  swarm.kill_launch_process();
  swarm.run_for(3s);
  swarm.resume_launch();
  swarm.run_for(10s);
  for (const bool silent : {false, true}) {
    swarm.network().relays().end(relay_of(swarm.options()), silent);
    swarm.run_for(3s);
    begin_relay(swarm.network(), swarm.options());
    const std::uint64_t before = swarm.launch()->book().committed();
    swarm.run_for(30s);
    EXPECT_GT(swarm.launch()->book().committed(), before + 10);
  }
  EXPECT_EQ(first_broken(check_counting(swarm)), "");
  swarm.finish_launch("enough");
  ASSERT_TRUE(swarm.run_to_end(120s));
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

TEST_F(RelayTest, RelaysThatDieStallAndSlowDownBreakNothing) {
  FaultOptions relays;
  relays.only = {FaultKind::kRelayDeath, FaultKind::kRelayStall, FaultKind::kRelaySlow};
  ScenarioResult total;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const RuleId rule = seed % 2 == 0 ? RuleId::kDiloco : RuleId::kAllreduce;
    SwarmOptions options = relay_options(rule, 100'000, seed % 3 == 0 ? 1 : 0.6);
    options.seed = seed;
    options.reach.home_launch = seed > 3;
    const ScenarioResult result = run_scenario(std::move(options), relays);
    EXPECT_EQ(first_broken(result.broken), "") << "seed " << seed;
    total.add(result);
  }
  EXPECT_EQ(total.fault_kinds.size(), relays.only.size());
  EXPECT_GT(total.joined, 0u);
}

}  // namespace
}  // namespace shoal
