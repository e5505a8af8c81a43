// Replicas in one process: what their rounds come to.
#include "runtime/solo/replica_rounds.h"

#include "runtime/solo/solo.h"
#include "tests/solo/solo_rig.h"

namespace shoal {
namespace {

class ReplicaRoundsTest : public SoloRig {
 protected:
  SoloOptions options(const std::string& more, int replicas) {
    SoloOptions options;
    options.config = config(more, 2, replicas);
    options.factory = factory();
    options.replicas = true;
    return options;
  }
  // The sum of what the microbatches were differentiated to, each at the stamp of its step, at a replica that began at
  // 0.
  static IntegerGradient expected(std::uint16_t stage, std::uint64_t microbatches, std::uint64_t per_step) {
    IntegerGradient sum{};
    for (std::uint64_t i = 0; i < microbatches; ++i) {
      const IntegerGradient one = integer_gradient({0, i}, StageId{stage}, i / per_step);
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] -= one[j];
    }
    return sum;
  }
  void expect_anchors(std::uint64_t microbatches, std::uint64_t per_step) {
    for (IntegerExecutor* executor : executors_) {
      const std::uint16_t stage = executor->spec().stage.value;
      const std::span<float> anchor = executor->arena().span(ArenaRole::kAnchor);
      const IntegerGradient sum = expected(stage, microbatches, per_step);
      for (std::size_t j = 0; j < sum.size(); ++j) EXPECT_EQ(anchor[j], sum[j]) << "stage " << stage << ", " << j;
    }
  }
};

constexpr char kDiloco[] = "[sync]\nrule = \"diloco\"\ninner_batch = 64\ninner_steps = 3\n";

TEST_F(ReplicaRoundsTest, EveryReplicaStandsOnTheSumOfAllMicrobatches) {
  // A step of three replicas is 6 microbatches of 32 targets, 2 each; rounds behind steps 3, 6, 7.
  SoloOptions run = options(std::string(kDiloco) + "[end]\ntokens = 1344\n", 3);
  run.on_step = [this](const TrainLine& line) {
    if (line.step == 3 || line.step == 6) expect_anchors(6 * line.step, 6);
  };
  const auto result = run_solo(run);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(executors_.size(), 6u);
  EXPECT_EQ(result->steps, 7u);
  EXPECT_EQ(result->tokens, 1344u);
  EXPECT_EQ(result->rounds, 3u);
  EXPECT_GT(result->round_bytes, 0u);
}

TEST_F(ReplicaRoundsTest, OfARuleOfEveryStepEachStepIsARound) {
  SoloOptions run = options("[sync]\nrule = \"allreduce\"\nmicrobatches_per_step = 6\n[end]\nsteps = 4\n", 4);
  run.on_step = [this](const TrainLine& line) { expect_anchors(6 * line.step, 6); };
  const auto result = run_solo(run);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->rounds, 4u);
}

TEST_F(ReplicaRoundsTest, WarmStepsAreOfAllReplicas) {
  SoloOptions run = options(std::string(kDiloco) + "warm_steps = 2\nmicrobatches_per_step = 6\n[end]\nsteps = 5\n", 3);
  run.on_step = [this](const TrainLine& line) {
    if (line.step <= 2 || line.step == 5) expect_anchors(6 * line.step, 6);
  };
  const auto result = run_solo(run);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->rounds, 3u) << "two warm steps, and one behind three of one's own";
}

TEST_F(ReplicaRoundsTest, WithoutThemNothingIsCounted) {
  SoloOptions run = options(std::string(kDiloco) + "[end]\nsteps = 2\n", 3);
  run.replicas = false;
  const auto result = run_solo(run);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(executors_.size(), 2u);
  EXPECT_EQ(result->rounds, 0u);
  EXPECT_EQ(solo_json(*result).find("rounds"), std::string::npos);
}

}  // namespace
}  // namespace shoal
