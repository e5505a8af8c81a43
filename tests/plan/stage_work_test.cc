#include "runtime/plan/stage_work.h"

#include <gtest/gtest.h>

#include "tests/plan/small_run.h"

namespace shoal {
namespace {

TEST(StageWorkTest, IsOfAForwardAndABackwardThatIsTwiceAsMuch) {
  const RunConfig config = small_run();
  const std::vector<double> work = stage_work(config);
  ASSERT_EQ(work.size(), 2u);
  EXPECT_DOUBLE_EQ(work[1],
                   3 * forward_cost(last_stage(config)) * static_cast<double>(config.targets_per_microbatch()));
}

// Two FLOPs a multiplication with an addition, for each weight that a token meets; attention's scores are few here.
TEST(StageWorkTest, ATokenTakesSixOperationsAWeight) {
  const RunConfig config = small_run();
  const StageSpec spec = last_stage(config);
  const double targets = static_cast<double>(config.targets_per_microbatch());
  const double weights = static_cast<double>(parameter_count(spec));
  EXPECT_NEAR(stage_work(config)[1] / targets / weights, 6, 0.7);
}

TEST(StageWorkTest, AForwardThatIsMadeAgainIsWorkButForTheLastStage) {
  RunConfig config = small_run();
  const std::vector<double> once = stage_work(config);
  config.compute.recompute = Recompute::kStage;
  const std::vector<double> again = stage_work(config);
  EXPECT_DOUBLE_EQ(again[0], once[0] * 4 / 3);
  EXPECT_DOUBLE_EQ(again[1], once[1]);
}

TEST(StageWorkTest, StagesThatComputeNoFlopsAreAlike) {
  RunConfig config = small_run();
  config.executor.kind = ExecutorKind::kPaced;
  EXPECT_EQ(stage_work(config), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace shoal
