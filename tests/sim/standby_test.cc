// A process that waits beside the launching process: it gets the run when that one is over, and not before.
#include "runtime/launch/standby.h"

#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

class StandbyTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  static SwarmOptions options(std::uint64_t microbatches, std::uint64_t seed = 1) {
    SwarmOptions options;
    options.seed = seed;
    options.config = small_config(GetParam(), options.stages, microbatches);
    return options;
  }
  static const Swarm::HostedStandby& standby(const Swarm& swarm, std::size_t index = 0) {
    return *swarm.standbys().at(index);
  }
  static bool run_until_committed(Swarm& swarm, std::uint64_t more, Duration limit) {
    const std::uint64_t wanted = swarm.launch()->book().committed() + more;
    return swarm.loop().run_until_true([&] { return swarm.launch()->book().committed() >= wanted; },
                                       swarm.loop().now() + limit);
  }
  static std::size_t commits(const Swarm& swarm) {
    return static_cast<std::size_t>(std::count_if(swarm.events().begin(), swarm.events().end(),
                                                  [](const SimEvent& e) { return e.event == EventKind::kCommit; }));
  }
};

// kill -9 of the one that has the run, wherever it is in what it does; a standby that had its turn is the next to die.
TEST_P(StandbyTest, OfEveryProcessThatIsKilledTheNextOneGoesOnAndNothingIsCountedTwice) {
  constexpr std::size_t kKills = 12;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    Swarm swarm(options(1500, seed));
    Rng rng(seed);
    ASSERT_TRUE(run_until_committed(swarm, 1, 60s));
    for (std::size_t i = 0; i < kKills; ++i) {
      swarm.add_standby();
      swarm.run_for(Standby::kLook + std::chrono::milliseconds(rng.below(4000)));
      ASSERT_FALSE(standby(swarm, i).had_turn) << "a process lives that has the run";
      const std::size_t before = commits(swarm);
      swarm.kill_launch_process();
      const TimePoint killed = swarm.loop().now();
      ASSERT_TRUE(swarm.loop().run_until_true([&] { return commits(swarm) > before; }, killed + 10s)) << i;
      ASSERT_TRUE(standby(swarm, i).had_turn);
      ASSERT_FALSE(standby(swarm, i).error) << standby(swarm, i).error->message;
    }
    ASSERT_TRUE(swarm.run_to_end(600s));
    EXPECT_EQ(first_broken(check_end(swarm)), "");
  }
}

TEST_P(StandbyTest, AFrozenProcessKeepsItsRunForEverAndIsNamedOnce) {
  Swarm swarm(options(600));
  swarm.add_standby();
  ASSERT_TRUE(run_until_committed(swarm, 20, 60s));
  EXPECT_EQ(standby(swarm).waits, "run is in use by launch");
  swarm.freeze_launch(true);
  const auto trainer = swarm.disk().content("run/trainer.log"), authority = swarm.disk().content("run/authority.log");
  swarm.run_for(Standby::kStill - 1s);
  EXPECT_TRUE(standby(swarm).warnings.empty());
  swarm.run_for(600s);
  ASSERT_EQ(standby(swarm).warnings.size(), 1u);
  EXPECT_TRUE(
      standby(swarm).warnings.front().starts_with("run is in use by launch, and neither log has grown for 60 s"))
      << standby(swarm).warnings.front();
  EXPECT_FALSE(standby(swarm).had_turn);
  EXPECT_EQ(swarm.disk().content("run/trainer.log"), trainer);
  EXPECT_EQ(swarm.disk().content("run/authority.log"), authority);
  swarm.freeze_launch(false);
  ASSERT_TRUE(run_until_committed(swarm, 20, 60s)) << "the first one goes on";
  swarm.freeze_launch(true);
  swarm.run_for(600s);
  EXPECT_EQ(standby(swarm).warnings.size(), 2u) << "the next standstill is another one";
  EXPECT_FALSE(standby(swarm).had_turn);
  swarm.kill_launch_process();
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_FALSE(standby(swarm).error);
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

TEST_P(StandbyTest, OfTwoThatWaitOneGoesOnAndTheOtherWaitsForThatOne) {
  Swarm swarm(options(600));
  for (int i = 0; i < 2; ++i) swarm.add_standby();
  for (int life = 1; life <= 2; ++life) {
    ASSERT_TRUE(run_until_committed(swarm, 20, 60s));
    swarm.kill_launch_process();
    ASSERT_TRUE(
        swarm.loop().run_until_true([&] { return swarm.launch() != nullptr; }, swarm.loop().now() + Standby::kLook));
    swarm.run_for(5s);
    EXPECT_EQ(standby(swarm, 0).had_turn + standby(swarm, 1).had_turn, life);
  }
  ASSERT_TRUE(swarm.run_to_end(300s));
  for (std::size_t i = 0; i < 2; ++i) EXPECT_FALSE(standby(swarm, i).error) << standby(swarm, i).error->message;
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

TEST_P(StandbyTest, ARunThatEndedIsNotGoneOnWith) {
  Swarm swarm(options(40));
  ASSERT_TRUE(swarm.run_to_end(300s));
  const std::size_t committed = commits(swarm);
  swarm.add_standby();
  swarm.run_for(5s);
  EXPECT_FALSE(standby(swarm).had_turn) << "the first one is still there";
  swarm.kill_launch_process();
  ASSERT_TRUE(swarm.loop().run_until_true([&] { return standby(swarm).had_turn; }, swarm.loop().now() + 1s));
  ASSERT_TRUE(run_until_finished(swarm, 30s));
  EXPECT_EQ(told(swarm, "this run has ended already"), 1u);
  EXPECT_FALSE(swarm.launch_error());
  EXPECT_EQ(commits(swarm), committed);
}

INSTANTIATE_TEST_SUITE_P(Rules, StandbyTest, testing::Values(RuleId::kDiloco, RuleId::kAllreduce),
                         [](const auto& info) { return info.param == RuleId::kDiloco ? "Diloco" : "AllReduce"; });

}  // namespace
}  // namespace shoal
