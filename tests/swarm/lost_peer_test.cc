// A peer that dies with a microbatch in its hands: what is counted in its place is the same gradient.
#include "tests/swarm/real_swarm.h"
#include "tests/swarm/solo_gradients.h"

namespace shoal {
namespace {

// One microbatch a step, so that the step's gradient is the microbatch's own.
void expect_the_gradient_of_an_undisturbed_run(const Death& death) {
  constexpr std::uint64_t kSteps = 2;
  const ScratchFolder folder;
  const RunConfig config = drained_config(folder, 1, kSteps);
  RealSwarm swarm(config, death), undisturbed(config);
  ASSERT_TRUE(swarm.run(30s)) << swarm.why();
  ASSERT_TRUE(undisturbed.run(30s)) << undisturbed.why();
  EXPECT_TRUE(swarm.somebody_died());
  EXPECT_EQ(swarm.summary().listed, 0u);
  EXPECT_EQ(swarm.lines().size(), kSteps);
  for (std::uint64_t step = 1; step <= kSteps; ++step)
    for (std::uint16_t stage = 0; stage < config.pipeline.stages; ++stage) {
      SCOPED_TRACE("step " + std::to_string(step) + ", stage " + std::to_string(stage));
      CountTag tag = 0;
      std::uint64_t entries = 0;
      const auto parts = swarm.gradients().parts(step, StageId(stage));
      for (const StepPart& part : parts) tag += part.tag, entries += part.entries;
      ASSERT_EQ(entries, 1u);
      EXPECT_EQ(tag, swarm.issued_tag(step));
      const auto reference = sum_of(undisturbed.gradients().parts(step, StageId(stage)));
      for (const TensorError& error : tensor_errors(config, StageId(stage), sum_of(parts), reference))
        EXPECT_LE(error.relative, 1e-6) << error.name;
    }
}

TEST(LostPeerTest, OfTheFirstStageLeavesTheGradientAsItIs) {
  expect_the_gradient_of_an_undisturbed_run({StageId(0), Death::Place::kGradientArrives});
}
TEST(LostPeerTest, OfAMiddleStageLeavesTheGradientAsItIs) {
  expect_the_gradient_of_an_undisturbed_run({StageId(2), Death::Place::kGradientArrives});
}
TEST(LostPeerTest, OfTheLastStageLeavesTheGradientAsItIs) {
  expect_the_gradient_of_an_undisturbed_run({StageId(3), Death::Place::kAfterForward});
}

}  // namespace
}  // namespace shoal
