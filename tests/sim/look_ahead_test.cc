// With which look-ahead the peers of a swarm make their inner steps, and which number a joiner's first one has.
#include <gtest/gtest.h>

#include "sim/swarm.h"
#include "tests/quiet_log.h"
#include "tests/stages/step_recorder.h"

namespace shoal {
namespace {

using Steps = std::vector<InnerStep>;

class LookAheadSwarmTest : public Quiet<testing::Test> {
 protected:
  SwarmOptions options() {
    SwarmOptions options;
    options.stages = 2;
    options.config = small_config(RuleId::kDiloco, options.stages, 120);
    options.factory = [this](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      made_.push_back(std::make_unique<Steps>());
      return std::unique_ptr<StageExecutor>(std::make_unique<StepRecorder>(spec, *made_.back()));
    };
    return options;
  }

  std::vector<std::unique_ptr<Steps>> made_;  // of each executor, in the order they were made
};

TEST_F(LookAheadSwarmTest, OverlapLooksOneUpdateAheadUnlessANumberIsGiven) {
  for (const std::optional<double> given : {std::optional<double>{}, std::optional(0.0), std::optional(2.5)}) {
    made_.clear();
    SwarmOptions with = options();
    with.config.optimizer.look_ahead.given = given;
    Swarm swarm(with);
    ASSERT_TRUE(swarm.run_to_end(120s));
    ASSERT_EQ(made_.size(), 4u);
    for (const auto& steps : made_) {
      ASSERT_GT(steps->size(), 2u);
      for (std::size_t i = 0; i < steps->size(); ++i) {
        const InnerStep& step = (*steps)[i];
        EXPECT_EQ(step.step, i + 1);
        EXPECT_EQ(step.look_ahead, i == 0 ? 0.0 : given.value_or(1.0));
        EXPECT_EQ(step.look_ahead_before, i <= 1 ? 0.0 : given.value_or(1.0));
      }
    }
  }
}

// The step of `allreduce` is the rule's, and every member must make the same. Executors of whole numbers over arrays as
// long as the model's: the first step's gradients are all of the same weights, so its anchor is the same in every run.
TEST_F(LookAheadSwarmTest, AllreduceLooksOneUpdateAheadInOverlapAndNotInDrain) {
  const auto anchors = [&](SyncMode mode, std::optional<double> given) {
    SwarmOptions with = options();
    with.config = small_config(RuleId::kAllreduce, with.stages, 24);
    with.config.executor.kind = ExecutorKind::kTorch;  // else the rule would keep its numbers whole
    with.config.sync.mode = mode;
    with.config.optimizer.look_ahead.given = given;
    with.factory = [](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      return std::unique_ptr<StageExecutor>(std::make_unique<IntegerExecutor>(spec, parameter_count(spec)));
    };
    Swarm swarm(with);
    EXPECT_TRUE(swarm.run_to_end(120s));
    std::map<StageId, std::vector<Digest>> found;
    for (const SimEvent& e : swarm.events())
      if (e.event == EventKind::kAnchor && e.version == Version(2)) found[*e.stage].push_back(*e.digest);
    EXPECT_EQ(found.size(), 2u);
    for (const auto& [stage, digests] : found) EXPECT_EQ(digests, std::vector<Digest>(2, digests.front())) << stage;
    return found;
  };
  for (const SyncMode mode : {SyncMode::kOverlap, SyncMode::kDrain}) {
    const auto automatic = anchors(mode, std::nullopt), none = anchors(mode, 0.0), one = anchors(mode, 1.0);
    EXPECT_NE(none, one);
    EXPECT_EQ(automatic, mode == SyncMode::kOverlap ? one : none);
  }
}

// Its moments came with the state of the warm start, so its steps go on and do not begin anew: a first step would
// correct their bias as that of zeroed ones, and give nothing back.
TEST_F(LookAheadSwarmTest, AJoinerBehindTheWarmStartGoesOnFromItsStep) {
  constexpr std::uint64_t kWarmSteps = 3;
  SwarmOptions with = options();
  with.config.sync.warm_steps = kWarmSteps;
  with.config.sync.inner_steps = 10000;  // no round behind it before the end
  with.config.sync.round_cap_s = 0;
  with.config.end.tokens = 20000 * with.config.targets_per_microbatch();
  Swarm swarm(with);
  const auto warm = [&] {
    return std::ranges::all_of(swarm.peers(), [](const auto& process) {
      const StagePeer* peer = process->peer->stage_peer();
      return peer != nullptr && peer->version() == Version(kWarmSteps);
    });
  };
  for (int i = 0; i < 600 && !warm(); ++i) swarm.run_for(100ms);
  ASSERT_TRUE(warm());
  const std::size_t joiner = swarm.add_peer();
  for (int i = 0; i < 600 && (made_.size() < 5 || made_.back()->empty()); ++i) swarm.run_for(100ms);
  ASSERT_EQ(made_.size(), 5u);
  ASSERT_FALSE(made_.back()->empty());
  EXPECT_EQ(swarm.peers()[joiner]->peer->stage_peer()->version(), Version(kWarmSteps)) << "else it proves nothing";
  EXPECT_EQ(made_.back()->front().step, kWarmSteps + 1);
  EXPECT_EQ(made_.back()->front().look_ahead_before, 1.0);
}

}  // namespace
}  // namespace shoal
