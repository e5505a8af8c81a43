// Replicas of a real model in one process.
#include "tests/common/letters.h"
#include "tests/torch/tiny_solo.h"

namespace shoal {
namespace {

class ReplicasSoloTest : public testing::Test {
 protected:
  SoloResult train(std::uint32_t replicas, bool with_rounds, const std::string& sync) {
    SoloOptions options;
    options.config = tiny_solo(folder_, letters(20000, 3), 2, 32, sync);
    options.config.pipeline.replicas = replicas;
    options.factory = tiny_factory();
    options.replicas = with_rounds;
    return solo_of(options);
  }
  ScratchFolder folder_;
};

constexpr char kEveryStep[] = "rule = \"allreduce\"\nmicrobatches_per_step = 8\n[end]\nsteps = 120\n";

TEST_F(ReplicasSoloTest, TwoThatShareEveryStepLearnWhatOneDoes) {
  EXPECT_NEAR(train(2, true, kEveryStep).validation_loss, train(1, false, kEveryStep).validation_loss, 1e-4);
}

// 32 targets a member and step: pieces and sums differ as much as honest ones do, and nobody is refused.
TEST_F(ReplicasSoloTest, OfManyThatMakeSmallStepsNobodyIsRefused) {
  EXPECT_NEAR(train(8, true, kEveryStep).validation_loss, train(1, false, kEveryStep).validation_loss, 0.1);
}

TEST_F(ReplicasSoloTest, TheFirstRoundMovesTheFirstWeights) {
  SoloOptions options;
  options.config =
      tiny_solo(folder_, letters(20000, 3), 2, 32, "rule = \"diloco\"\ninner_steps = 5\n[end]\nsteps = 3\n");
  options.config.pipeline.replicas = 2;
  options.replicas = true;
  std::vector<StageExecutor*> made;
  options.factory = [&](const StageSpec& spec) {
    auto executor = tiny_factory()(spec);
    if (executor.ok()) made.push_back(executor->get());
    return executor;
  };
  options.on_step = [&](const TrainLine& line) {
    if (line.step != 1) return;
    for (StageExecutor* executor : made) {
      std::vector<float> first(executor->arena().size());
      initialise(executor->spec(), first);
      EXPECT_TRUE(std::ranges::equal(executor->arena().span(ArenaRole::kAnchor), first));
    }
  };
  EXPECT_EQ(solo_of(options).rounds, 1u);
  EXPECT_EQ(made.size(), 4u);
}

TEST_F(ReplicasSoloTest, RoundsOfStepsOfTheirOwnLearn) {
  const SoloResult result = train(4, true, "rule = \"diloco\"\ninner_steps = 5\n[end]\nsteps = 60\n");
  EXPECT_EQ(result.rounds, 12u);
  EXPECT_LT(result.validation_loss, 0.8 * result.losses.first());
}

}  // namespace
}  // namespace shoal
