// What is validated is what is saved: every stage answers at the anchor of its last round, or asks to be left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"
#include "state/state_image.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

// Exact, and within what a loss may be.
double loss_of(double sum) { return 64 + sum / (1 << 20); }
double sum_of(double loss, int samples) { return (loss - 64 * samples) * (1 << 20); }

// The loss of an evaluation is of the sum over all stages' anchors: whole numbers, so that it says exactly which.
class AnchorSumExecutor final : public IntegerExecutor {
 public:
  using IntegerExecutor::IntegerExecutor;

 protected:
  Result<Computed> compute(const StageInput& input, ArenaRole weights, bool keep_graph) override {
    if (weights != ArenaRole::kAnchor) return IntegerExecutor::compute(input, weights, keep_graph);
    const std::span<const float> anchor = arena().span(ArenaRole::kAnchor);
    const float above = spec().is_first() ? 0.0f : input.activation.on_host().f32()[0];
    const float sum = std::accumulate(anchor.begin(), anchor.end(), above);
    Computed computed;
    computed.output.targets = static_cast<std::uint64_t>(sequences_of(input)) * spec().model.positions;
    if (spec().is_last()) {
      computed.output.loss_sum = loss_of(sum);
      return computed;
    }
    const Shape shape{sequences_of(input), spec().model.positions, spec().model.wire_width()};
    Buffer values(static_cast<std::size_t>(element_count(shape)) * sizeof(float));
    std::ranges::fill(values.as<float>(), sum);
    computed.activation = make_host_tensor(DType::kF32, shape, std::move(values));
    return computed;
  }
};

double anchor_sum(const Bytes& image) {
  const Result<StateHeader> header = parse_state_header(image);
  EXPECT_TRUE(header.ok());
  std::vector<float> anchor(header->floats);
  std::memcpy(anchor.data(), image.data() + kStateHeaderBytes, anchor.size() * sizeof(float));
  return std::accumulate(anchor.begin(), anchor.end(), 0.0);
}

class ValidationTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  static SwarmOptions options(std::uint16_t replicas) {
    SwarmOptions options;
    options.stages = 2;
    options.replicas = replicas;
    options.config = small_config(GetParam(), 2, GetParam() == RuleId::kDiloco ? 53 : 48);  // the last round has work
    options.config.data.validation_samples = 0;                                             // all
    options.save = true;
    options.factory = [](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      return std::unique_ptr<StageExecutor>(std::make_unique<AnchorSumExecutor>(spec));
    };
    return options;
  }
  static bool told(const Swarm& swarm, const std::string& line) {
    return std::find(swarm.notices().begin(), swarm.notices().end(), line) != swarm.notices().end();
  }
  // Of stage 1: what comes to it from the launching process can wait, and Forwards still come.
  static std::size_t one_of_the_last_stage(const Swarm& swarm) {
    for (std::size_t i = 0; i < swarm.peers().size(); ++i)
      if (swarm.peers()[i]->peer->report().stage == StageId(1)) return i;
    ADD_FAILURE() << "nobody serves stage 1";
    return 0;
  }
  // The newest round of stage 1 is the run's last one, and what the authority says of it waits on its way to `peer`.
  static void hold_back_the_last_commit(Swarm& swarm, std::size_t& peer) {
    swarm.run_for(4s);
    peer = one_of_the_last_stage(swarm);
    const auto reported = [&] {
      const StagePeer* const here = swarm.peers()[peer]->peer->stage_peer();
      if (here == nullptr || !here->prepared()) return false;
      const RoundOpen& open = *here->prepared();
      return GetParam() == RuleId::kDiloco ? open.last : open.step.value == 6;  // of eight microbatches
    };
    ASSERT_TRUE(swarm.loop().run_until_true(reported, swarm.loop().now() + 300s));
    swarm.network().block(kSimLaunchAddress, swarm.peers()[peer]->address);
    ASSERT_TRUE(swarm.loop().run_until_true([&] { return told(swarm, "validating"); }, swarm.loop().now() + 60s));
    ASSERT_LT(swarm.peers()[peer]->peer->stage_peer()->version(), swarm.launch()->authority().status()[1].version);
  }
  static void deliver(Swarm& swarm, std::size_t peer) {
    swarm.network().block(kSimLaunchAddress, swarm.peers()[peer]->address, false);
  }
  // Forwards of the validation that went to `peer`.
  static std::size_t asked(const Swarm& swarm, std::size_t peer) {
    const Session session = swarm.peers()[peer]->peer->session();
    return static_cast<std::size_t>(
        std::count_if(swarm.events().begin(), swarm.events().end(), [&](const EventRecord& e) {
          return e.event == EventKind::kForwardSent && e.microbatch->trainer >> 63 != 0 && e.about == session;
        }));
  }
  static void expect_of_the_saved_states(const Swarm& swarm) {
    ASSERT_EQ(swarm.states().size(), 2u);
    double sum = 0;
    std::vector<Version> versions;
    for (const auto& [stage, image] : swarm.states()) {
      sum += anchor_sum(image);
      versions.push_back(parse_state_header(image)->version);
    }
    const double targets = static_cast<double>(swarm.options().config.targets_per_microbatch());
    EXPECT_DOUBLE_EQ(swarm.summary().validation_loss.value() * targets, loss_of(sum));
    EXPECT_EQ(swarm.summary().validation_versions, versions);
    const auto said = std::find_if(swarm.events().begin(), swarm.events().end(),
                                   [](const EventRecord& e) { return e.event == EventKind::kValidation; });
    ASSERT_NE(said, swarm.events().end());
    EXPECT_EQ(said->versions, versions);
    EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  }
};

TEST_P(ValidationTest, AReplicaThatTheLastCommitHasNotReachedDoesNotAnswer) {
  Swarm swarm(options(2));
  std::size_t late = 0;
  hold_back_the_last_commit(swarm, late);
  swarm.run_for(3s);
  deliver(swarm, late);
  ASSERT_TRUE(swarm.run_to_end(60s));
  EXPECT_GT(asked(swarm, late), 0u);
  expect_of_the_saved_states(swarm);
}

TEST_P(ValidationTest, AStageOfOneReplicaIsWaitedForUntilTheCommitReachesIt) {
  Swarm swarm(options(1));
  std::size_t late = 0;
  hold_back_the_last_commit(swarm, late);
  swarm.run_for(3s);
  EXPECT_GT(asked(swarm, late), 1u) << "asked again after it had said that it is behind";
  EXPECT_FALSE(swarm.finished());
  deliver(swarm, late);
  ASSERT_TRUE(swarm.run_to_end(60s));
  expect_of_the_saved_states(swarm);
}

// However few microbatches train at once: nothing that follows could be late.
TEST_P(ValidationTest, FillsThePipeWhereOneMicrobatchTrainsAtOnce) {
  SwarmOptions one = options(2);
  one.config.pipeline.in_flight = 1;
  Swarm swarm(one);
  ASSERT_TRUE(swarm.run_to_end(600s));
  std::set<MicrobatchId> begun;  // before any went on from stage 0
  for (const EventRecord& e : swarm.events())
    if (e.event == EventKind::kForwardSent && e.microbatch->trainer >> 63 != 0 && !begun.insert(*e.microbatch).second)
      break;
  EXPECT_GT(begun.size(), 1u);
}

// Estimates while it trains are of whatever anchors the peers have, change nothing and end with the training.
TEST_P(ValidationTest, IsEstimatedWhileItTrains) {
  SwarmOptions often = options(2);
  often.config.data.validate_every = 2;
  often.config.data.validation_samples = 3;
  Swarm swarm(often);
  ASSERT_TRUE(swarm.run_to_end(600s));
  std::vector<std::uint64_t> steps;
  std::vector<double> sums;
  for (const EventRecord& e : swarm.events()) {
    if (e.event != EventKind::kEstimate) continue;
    steps.push_back(e.step->value);
    EXPECT_EQ(e.targets, 3 * often.config.targets_per_microbatch());
    sums.push_back(sum_of(*e.loss * static_cast<double>(*e.targets), 3));
    EXPECT_NEAR(sums.back(), std::round(sums.back()), 1e-6) << "three sums over anchors, and they are whole";
  }
  ASSERT_GE(steps.size(), 2u);
  EXPECT_NE(sums.front(), sums.back()) << "anchors moved on";
  for (const std::uint64_t step : steps) EXPECT_EQ(step % 2, 0u);
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  expect_of_the_saved_states(swarm);
}

TEST_P(ValidationTest, AnEstimateOutlivesThePeerThatMadeIt) {
  SwarmOptions often = options(2);
  often.config.data.validate_every = 1;
  Swarm swarm(often);
  const auto of_an_estimate = [](const EventRecord& e) {
    return e.event == EventKind::kForwardSent && e.microbatch->trainer >> 63 != 0;
  };
  ASSERT_TRUE(swarm.loop().run_until_true([&] { return std::ranges::any_of(swarm.events(), of_an_estimate); },
                                          TimePoint{} + 300s));
  const auto asked = std::ranges::find_if(swarm.events(), of_an_estimate);
  const auto killed = std::ranges::find_if(
      swarm.peers(), [&](const auto& peer) { return peer->peer && peer->peer->session() == asked->about; });
  ASSERT_NE(killed, swarm.peers().end());
  swarm.kill_peer(static_cast<std::size_t>(killed - swarm.peers().begin()));
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_TRUE(std::ranges::any_of(swarm.events(), [](const auto& e) { return e.event == EventKind::kEstimate; }));
  expect_of_the_saved_states(swarm);
}

INSTANTIATE_TEST_SUITE_P(BothRules, ValidationTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                         [](const auto& info) { return info.param == RuleId::kDiloco ? "Diloco" : "Allreduce"; });

}  // namespace
}  // namespace shoal
