// Four stages with two replicas each over real sockets compute what one process computes.
#include <cmath>
#include <cstdio>

#include "runtime/solo/solo.h"
#include "tests/swarm/real_swarm.h"
#include "tests/swarm/solo_gradients.h"

namespace shoal {
namespace {

constexpr std::uint64_t kMicrobatches = 16, kSteps = 50;
constexpr std::uint64_t kEntriesMin = 3;  // of every replica in the step that is judged
constexpr int kAttemptsMax = 8;           // runs of a single step

// The first step in which every replica of every stage counted its share; 0: none.
std::uint64_t judged_step(const RealSwarm& swarm, const RunConfig& config, std::uint64_t entries_min) {
  for (std::uint64_t step = 1; step <= config.end.steps; ++step) {
    bool all = true;
    for (std::uint16_t stage = 0; stage < config.pipeline.stages; ++stage) {
      const auto parts = swarm.gradients().parts(step, StageId(stage));
      all = all && parts.size() == config.pipeline.replicas;
      for (const StepPart& part : parts) all = all && part.entries >= entries_min;
    }
    if (all) return step;
  }
  return 0;
}

// Every tensor's error at `step`, after what was counted is proved to be that step's microbatches, each once.
std::vector<TensorError> errors_at(const RealSwarm& swarm, const RunConfig& config, std::uint64_t step) {
  const auto solo = solo_gradients(config, torch_on_cpu(), step);
  std::vector<TensorError> all;
  for (std::uint16_t stage = 0; stage < config.pipeline.stages; ++stage) {
    const auto parts = swarm.gradients().parts(step, StageId(stage));
    CountTag tag = 0;
    std::uint64_t entries = 0;
    for (const StepPart& part : parts) tag += part.tag, entries += part.entries;
    EXPECT_EQ(entries, config.sync.microbatches_per_step) << "stage " << stage;
    EXPECT_EQ(tag, swarm.issued_tag(step)) << "stage " << stage;
    const auto errors = tensor_errors(config, StageId(stage), sum_of(parts), solo[stage]);
    all.insert(all.end(), errors.begin(), errors.end());
  }
  return all;
}

double greatest(const std::vector<TensorError>& errors) {
  double most = 0;
  for (const TensorError& error : errors) most = std::max(most, error.relative);
  return most;
}

TEST(GradientTest, OfEveryTensorAndTheLossOverFiftyStepsAreThoseOfOneProcess) {
  const ScratchFolder folder;
  const RunConfig config = drained_config(folder, kMicrobatches, kSteps);
  RealSwarm swarm(config);
  ASSERT_TRUE(swarm.run(120s)) << swarm.why();
  EXPECT_EQ(swarm.summary().lost, 0u);

  const std::uint64_t step = judged_step(swarm, config, kEntriesMin);
  ASSERT_GT(step, 0u) << "in no step every replica counted " << kEntriesMin;
  const auto errors = errors_at(swarm, config, step);
  for (const TensorError& error : errors) EXPECT_LE(error.relative, 1e-5) << error.name;
  std::printf("step %d: greatest relative error %.2g\n", static_cast<int>(step), greatest(errors));

  SoloOptions options;
  options.config = config;
  options.factory = torch_on_cpu();
  const auto solo = run_solo(options);
  ASSERT_TRUE(solo.ok()) << solo.error().message;
  ASSERT_EQ(solo->losses.steps().size(), kSteps);
  ASSERT_EQ(swarm.lines().size(), kSteps);
  for (std::uint64_t i = 0; i < kSteps; ++i)
    EXPECT_NEAR(swarm.lines()[i].loss, solo->losses.steps()[i], 1e-5 * solo->losses.steps()[i]) << "step " << i + 1;
  EXPECT_LT(solo->losses.last(), 0.9 * solo->losses.first()) << "the weights moved";
}

TEST(GradientTest, OfTheLlamaFamilyTooAreThoseOfOneProcess) {
  const ScratchFolder folder;
  RunConfig config = drained_config(folder, kMicrobatches, 10);
  config.model.family = ModelFamily::kLlama;
  config.model.kv_heads = 2;
  config.model.extras = AttentionExtras::kQkNorm;
  RealSwarm swarm(config);
  ASSERT_TRUE(swarm.run(120s)) << swarm.why();
  const std::uint64_t step = judged_step(swarm, config, kEntriesMin);
  ASSERT_GT(step, 0u) << "in no step every replica counted " << kEntriesMin;
  for (const TensorError& error : errors_at(swarm, config, step)) EXPECT_LE(error.relative, 1e-5) << error.name;
}

TEST(GradientTest, StepsThatLookAheadAreThoseOfOneProcess) {
  const ScratchFolder folder;
  RunConfig config = drained_config(folder, kMicrobatches, 10);
  std::vector<double> losses[2];
  for (const double look_ahead : {0.0, 1.0}) {
    config.optimizer.look_ahead.given = look_ahead;
    SoloOptions options;
    options.config = config;
    options.factory = torch_on_cpu();
    const auto solo = run_solo(options);
    ASSERT_TRUE(solo.ok()) << solo.error().message;
    losses[look_ahead > 0] = solo->losses.steps();
  }
  EXPECT_GT(std::abs(losses[1].back() - losses[0].back()), 1e-4 * losses[0].back()) << "else it proves nothing";
  RealSwarm swarm(config);
  ASSERT_TRUE(swarm.run(60s)) << swarm.why();
  ASSERT_EQ(swarm.lines().size(), losses[1].size());
  for (std::size_t i = 0; i < losses[1].size(); ++i)
    EXPECT_NEAR(swarm.lines()[i].loss, losses[1][i], 1e-5 * losses[1][i]) << "step " << i + 1;
}

TEST(GradientTest, ThroughInt8IsNearAndNotTheSame) {
  const ScratchFolder folder;
  RunConfig config = drained_config(folder, kMicrobatches, 1);
  std::vector<TensorError> errors[2];
  for (const CodecId codec : {CodecId::kRaw, CodecId::kInt8}) {
    config.wire.forward.codecs = config.wire.backward.codecs = {codec};
    // From one step and one set of weights. How much of it each counted is the swarm's choice: again, until all did.
    bool judged = false;
    for (int attempt = 0; attempt < kAttemptsMax && !judged; ++attempt) {
      RealSwarm swarm(config);
      ASSERT_TRUE(swarm.run(60s)) << swarm.why();
      judged = judged_step(swarm, config, kEntriesMin) == 1;
      if (judged) errors[codec == CodecId::kInt8] = errors_at(swarm, config, 1);
    }
    ASSERT_TRUE(judged) << "in no run every replica counted " << kEntriesMin;
  }
  std::printf("greatest relative error: raw %.2g, int8 %.2g\n", greatest(errors[0]), greatest(errors[1]));
  for (std::size_t i = 0; i < errors[0].size(); ++i) {
    EXPECT_LE(errors[1][i].relative, 0.02) << errors[1][i].name;
    EXPECT_GT(errors[1][i].relative, errors[0][i].relative) << errors[1][i].name;
  }
}

// Differences and their bases too: one microbatch at a time, so that sums are made in one order, and nearly two epochs.
TEST(GradientTest, OneProcessWithWireLearnsWhatASwarmLearnsThroughItsCodecs) {
  const ScratchFolder folder;
  RunConfig config = drained_config(folder, 4, 12);
  const std::string text = ScratchFolder::read(config.data.paths.front());
  config.data.paths = {folder.write("short.bin", text.substr(0, 33 * 32))};
  config.pipeline.replicas = 1;
  config.pipeline.in_flight = 1;
  config.wire.forward.codecs = {CodecId::kAq2};
  config.wire.backward.codecs = {CodecId::kInt4};
  SoloOptions options;
  options.config = config;
  options.factory = torch_on_cpu();
  const auto plain = run_solo(options);
  options.wire = true;
  const auto coded = run_solo(options);
  ASSERT_TRUE(plain.ok() && coded.ok());
  ASSERT_GT(coded->traffic->delta_frames, 0u);
  RealSwarm swarm(config);
  ASSERT_TRUE(swarm.run(60s)) << swarm.why();
  const std::vector<double>& losses = coded->losses.steps();
  ASSERT_EQ(swarm.lines().size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(swarm.lines()[i].loss, losses[i], 1e-6 * losses[i]) << "step " << i + 1;
  EXPECT_GT(std::abs(plain->losses.steps().back() - losses.back()), 1e-4 * losses.back()) << "else it proves nothing";
}

}  // namespace
}  // namespace shoal
