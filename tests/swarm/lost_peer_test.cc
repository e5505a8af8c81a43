// A peer that dies with a microbatch in its hands: what is counted in its place is the same gradient.
#include "tests/swarm/real_swarm.h"
#include "tests/swarm/solo_gradients.h"

namespace shoal {
namespace {

constexpr std::uint64_t kSteps = 2;

class LostPeerTest : public testing::Test {
 protected:
  // Run once for all of them.
  static void SetUpTestSuite() {
    undisturbed_ = std::make_unique<RealSwarm>(config());
    ASSERT_TRUE(undisturbed_->run(120s)) << undisturbed_->why();
  }
  static void TearDownTestSuite() { undisturbed_.reset(); }

  // One microbatch a step, so that the step's gradient is the microbatch's own.
  static const RunConfig& config() {
    static const ScratchFolder folder;
    static const RunConfig config = [] {
      RunConfig made = drained_config(folder, 1, kSteps);
      made.timing = {1, 2};
      return made;
    }();
    return config;
  }

  void expect_the_gradient_of_an_undisturbed_run(const Death& death) {
    RealSwarm swarm(config(), death);
    ASSERT_TRUE(swarm.run(120s)) << swarm.why();
    EXPECT_TRUE(swarm.somebody_died());
    EXPECT_EQ(swarm.summary().lost, 0u);
    EXPECT_EQ(swarm.lines().size(), kSteps);
    for (std::uint64_t step = 1; step <= kSteps; ++step)
      for (std::uint16_t stage = 0; stage < config().pipeline.stages; ++stage) {
        SCOPED_TRACE("step " + std::to_string(step) + ", stage " + std::to_string(stage));
        expect_equal_parts(swarm, step, StageId(stage));
      }
  }

 private:
  static void expect_equal_parts(const RealSwarm& swarm, std::uint64_t step, StageId stage) {
    CountTag tag = 0;
    std::uint64_t entries = 0;
    const auto parts = swarm.gradients().parts(step, stage);
    for (const StepPart& part : parts) tag += part.tag, entries += part.entries;
    ASSERT_EQ(entries, 1u);
    EXPECT_EQ(tag, swarm.issued_tag(step));
    const auto reference = sum_of(undisturbed_->gradients().parts(step, stage));
    for (const TensorError& error : tensor_errors(config(), stage, sum_of(parts), reference))
      EXPECT_LE(error.relative, 1e-6) << error.name;
  }
  static std::unique_ptr<RealSwarm> undisturbed_;
};
std::unique_ptr<RealSwarm> LostPeerTest::undisturbed_;

TEST_F(LostPeerTest, OfTheFirstStageLeavesTheGradientAsItIs) {
  expect_the_gradient_of_an_undisturbed_run({StageId(0), Death::Place::kGradientArrives});
}
TEST_F(LostPeerTest, OfAMiddleStageLeavesTheGradientAsItIs) {
  expect_the_gradient_of_an_undisturbed_run({StageId(2), Death::Place::kGradientArrives});
}
TEST_F(LostPeerTest, OfTheLastStageLeavesTheGradientAsItIs) {
  expect_the_gradient_of_an_undisturbed_run({StageId(3), Death::Place::kAfterForward});
}

}  // namespace
}  // namespace shoal
