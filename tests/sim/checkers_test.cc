// The checkers see a single unit that is too much, wherever a living replica could hold it, at any time.
#include "sim/checkers.h"

#include <gtest/gtest.h>

#include "tests/quiet_log.h"

namespace shoal {
namespace {

constexpr ArenaRole kHeld[] = {ArenaRole::kAnchor, ArenaRole::kCurrent, ArenaRole::kAccumulatorA,
                               ArenaRole::kAccumulatorB};

class CheckersTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  static SwarmOptions options() {
    SwarmOptions result;
    result.config = small_config(GetParam(), result.stages, 400);
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Rules, CheckersTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                         [](const auto& item) { return item.param == RuleId::kAllreduce ? "Allreduce" : "Diloco"; });

TEST_P(CheckersTest, SeeOneUnitTooMuchInAnyLivingReplica) {
  Swarm swarm(options());
  CountingChecker checker(swarm);
  for (int second = 0; second < 8; ++second) {
    swarm.run_for(1s);
    ASSERT_EQ(checker.look(), std::vector<std::string>{});
  }
  for (const auto& process : swarm.peers()) {
    ASSERT_TRUE(process->peer->stage_peer()->serving());
    Arena& arena = process->peer->executor()->arena();
    for (const ArenaRole role : kHeld) {
      const int number = static_cast<int>(role);
      ++arena.tag(role);
      EXPECT_FALSE(checker.look().empty()) << "tag of role " << number;
      --arena.tag(role);
      for (float& value : arena.span(role)) {
        value += 1;
        EXPECT_FALSE(checker.look().empty()) << "value of role " << number;
        value -= 1;
      }
    }
  }
  EXPECT_EQ(checker.look(), std::vector<std::string>{});
}

TEST_P(CheckersTest, HoldAtEveryMomentOfARunWithoutFaults) {
  Swarm swarm(options());
  CountingChecker checker(swarm);
  while (!swarm.finished()) {
    ASSERT_LT(swarm.loop().now().time_since_epoch(), 300s);
    swarm.run_for(7ms);
    ASSERT_EQ(checker.look(), std::vector<std::string>{});
  }
  EXPECT_EQ(swarm.summary().committed, 400u);
}

}  // namespace
}  // namespace shoal
