#include "runtime/launch/run_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/swarm.h"

namespace shoal {
namespace {

using enum RunPhase;

std::vector<RunPhase> phases() {
  std::vector<RunPhase> all;
  for (int phase = 0; phase <= static_cast<int>(kOver); ++phase) all.push_back(static_cast<RunPhase>(phase));
  return all;
}

TEST(RunEndTest, EveryPhaseEndsAndFollowsAnotherAndNothingFollowsTheLast) {
  for (const RunPhase phase : phases()) {
    SCOPED_TRACE(RunEnd::name_of(phase));
    EXPECT_EQ(RunEnd::may_follow(phase, kOver), phase != kOver);
    EXPECT_FALSE(RunEnd::may_follow(kOver, phase));
    const auto all = phases();
    EXPECT_EQ(std::any_of(all.begin(), all.end(), [&](RunPhase from) { return RunEnd::may_follow(from, phase); }),
              phase != kOpening);
  }
}

// A phase is never gone back to; a validation alone may begin anew.
TEST(RunEndTest, ARunGoesForwardThroughItsPhases) {
  for (const RunPhase from : phases())
    for (const RunPhase to : phases())
      EXPECT_TRUE(from < to || (from == kValidating && to == from) || !RunEnd::may_follow(from, to))
          << RunEnd::name_of(from);
}

TEST(RunEndTest, ARunThatIsGivenUpMakesNoMoreRoundsAndEndsOnlyThroughItsLog) {
  for (const RunPhase phase : phases()) {
    EXPECT_EQ(RunEnd::may_follow(kGivingUp, phase), phase == kFetching || phase == kLogging || phase == kOver);
    EXPECT_EQ(RunEnd::may_follow(phase, kTelling), phase == kLogging || phase == kOpening)
        << "an earlier life logged it";
  }
}

class EndOrderTest : public testing::Test {
 protected:
  EndOrderTest() { set_log_level(LogLevel::kError); }
  ~EndOrderTest() override { set_log_level(LogLevel::kInfo); }

  static SwarmOptions options() {
    SwarmOptions options;
    options.stages = 2;
    options.config = small_config(RuleId::kDiloco, options.stages, 32);
    return options;
  }
  bool run_until(RunPhase phase) {
    return swarm_.loop().run_until_true(
        [&] {
          if (seen_.empty() || seen_.back() != swarm_.launch()->phase()) seen_.push_back(swarm_.launch()->phase());
          return seen_.back() == phase;
        },
        swarm_.loop().now() + 300s);
  }

  Swarm swarm_{options()};
  std::vector<RunPhase> seen_;
};

TEST_F(EndOrderTest, AWholeRunSettlesMakesItsLastRoundsAndValidates) {
  ASSERT_TRUE(run_until(kOver));
  EXPECT_THAT(
      seen_, testing::ElementsAre(kOpening, kTraining, kSettling, kLastRounds, kValidating, kLogging, kTelling, kOver));
  EXPECT_TRUE(swarm_.summary().validation_loss);
}

TEST_F(EndOrderTest, ARunThatLosesAStageWhileItValidatesGivesUpAfterCtrlC) {
  ASSERT_TRUE(run_until(kValidating));
  for (std::size_t peer = 0; peer < swarm_.peers().size(); ++peer)
    if (swarm_.peers()[peer]->peer->report().stage == StageId(1)) swarm_.kill_peer(peer);
  swarm_.stop_launch();
  seen_.clear();
  ASSERT_TRUE(run_until(kOver));
  EXPECT_THAT(seen_, testing::ElementsAre(kValidating, kGivingUp, kLogging, kTelling, kOver));
  EXPECT_FALSE(swarm_.summary().validation_loss);
}

}  // namespace
}  // namespace shoal
