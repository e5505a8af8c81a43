// What a stage takes, and what `--memory` allows.
#include "runtime/plan/stage_memory.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/plan/small_run.h"

namespace shoal {
namespace {

constexpr std::uint64_t kFloat = 4;

// Of an activation of small_run.
std::uint64_t raw_bytes(const RunConfig& config) { return kFloat * config.model.dim * config.targets_per_microbatch(); }

TEST(StageMemoryTest, CreditsFollowTheMemoryLeftBesideTheStage) {
  const RunConfig config = small_run();
  const StageMemory memory = stage_memory(config, last_stage(config));
  const StageSpec spec = last_stage(config);
  EXPECT_EQ(credits_within(memory.needed(2), config, spec).value(), 2u);
  EXPECT_EQ(credits_within(memory.needed(10) - 1, config, spec).value(), 9u);
  EXPECT_EQ(credits_within(memory.needed(1000), config, spec).value(), kCreditsMax);
}

TEST(StageMemoryTest, AModelOfOneStageKeepsNothingOfAMicrobatch) {
  RunConfig config = small_run();
  config.pipeline.stages = 1;
  const StageSpec spec = split_model(config.model_spec(), 1)->front();
  ASSERT_EQ(stage_memory(config, spec).entry(), 0u);
  EXPECT_EQ(credits_within(stage_memory(config, spec).needed(2) + 1000, config, spec).value(), kCreditsMax);
}

TEST(StageMemoryTest, UsualCreditsAreOneReplicasShareOfWhatIsInFlight) {
  RunConfig config = small_run();
  config.pipeline.replicas = 2;
  const std::map<std::uint32_t, std::size_t> wanted = {
      {1, kCreditsUsual}, {32, kCreditsUsual}, {65, 33}, {4096, kCreditsMax}};
  for (const auto& [in_flight, credits] : wanted) {
    config.pipeline.in_flight = in_flight;
    EXPECT_EQ(usual_credits(config), credits) << in_flight;
  }
}

TEST(StageMemoryTest, AllTheTimeAreEightArraysAndSevenWithoutAnOuterMomentum) {
  RunConfig config = small_run();
  const StageSpec spec = last_stage(config);
  const std::uint64_t array = kFloat * parameter_count(spec);
  EXPECT_EQ(stage_memory(config, spec).state(), 8 * array);
  EXPECT_EQ(stage_memory(config, spec).image, 2 * array);
  config.sync.rule = RuleId::kAllreduce;
  EXPECT_EQ(stage_memory(config, spec).state(), 7 * array);
  EXPECT_EQ(stage_memory(config, spec).image, 3 * array);
}

TEST(StageMemoryTest, AProcessTakesItsOwnTheStageAndItsMicrobatches) {
  RunConfig config = small_run();
  const StageSpec spec = last_stage(config);
  const StageMemory memory = stage_memory(config, spec);
  EXPECT_EQ(memory.loss, kFloat * 256 * (2 * config.data.sequences * 64 + 64))
      << "few tokens: all of their logits at once";
  config.pipeline.in_flight = std::uint32_t{20};
  EXPECT_EQ(process_bytes(config, spec, 16), kProgramBytes + memory.needed(16));
  EXPECT_EQ(process_bytes(config, spec, 16, 5), 5 + memory.needed(16));
  config.pipeline.in_flight = std::uint32_t{4};
  EXPECT_EQ(process_bytes(config, spec, 16), kProgramBytes + memory.needed(4)) << "the run has no more of them";
  config.executor.kind = ExecutorKind::kPaced;
  EXPECT_EQ(process_bytes(config, spec, 16), 0u) << "its arrays are of any size";
}

// A graph goes while the gradients grow, and a round's parts are put together beside it.
TEST(StageMemoryTest, ThePeakHasTheLargerOfAGraphAndTheGradients) {
  StageMemory memory;
  memory.parameters = 1000;
  memory.gradients = 100;
  memory.round = 40;
  memory.prepared = 50;
  memory.graph = 70;
  memory.frames = 7;
  EXPECT_EQ(memory.peak(3), 1000u + 3 * 7 + 50 + 100) << "one graph at a time";
  memory.graphs_wait = true;
  EXPECT_EQ(memory.peak(3), 1000u + 3 * 77 + 50 + 30);
  memory.gradients = 60;
  EXPECT_EQ(memory.peak(3), 1000u + 3 * 77 + 50) << "the gradients are less than the graph that goes";
  memory.round = 60;
  EXPECT_EQ(memory.peak(3), 1000u + 3 * 77 + 60) << "parts are put together before a candidate is made";
  memory.graphs_wait = false;
  memory.beside_graph = 35;
  EXPECT_EQ(memory.peak(3), 1000u + 3 * 7 + 60 + 70 + 35) << "layer by layer, gradients stand beside a graph";
}

TEST(StageMemoryTest, Bf16KeepsCopiesOfTheMatricesAndLessOfEachMicrobatch) {
  RunConfig config = small_run();
  const StageSpec spec = split_model(config.model_spec(), 2)->front();
  const StageMemory wide = stage_memory(config, spec);
  config.compute.dtype = ComputeType::kBf16;
  const StageMemory narrow = stage_memory(config, spec);
  EXPECT_EQ(narrow.narrow, 3 * 2 * 2 * 12 * 64 * 64u) << "three copies of the matrices of two layers, and of no table";
  EXPECT_LT(narrow.graph, wide.graph * 2 / 3);
  EXPECT_GT(narrow.graph, wide.graph / 2);
  EXPECT_EQ(narrow.frames, wide.frames);
}

TEST(StageMemoryTest, WithoutKeptGraphsOneIsThereAtATime) {
  RunConfig config = small_run();
  const std::vector<StageSpec> specs = *split_model(config.model_spec(), 2);
  const StageMemory kept = stage_memory(config, specs[0]), last = stage_memory(config, specs[1]);
  EXPECT_TRUE(kept.graphs_wait);
  EXPECT_FALSE(last.graphs_wait) << "its backward follows at once";
  EXPECT_EQ(kept.graph, raw_bytes(config) * (2 * 16 + 1));
  EXPECT_EQ(kept.entry(), kept.graph + kept.frames);
  config.compute.recompute = Recompute::kStage;
  const StageMemory again = stage_memory(config, specs[0]);
  EXPECT_EQ(again.entry(), again.frames);
  EXPECT_LT(again.entry(), kept.entry() / 8);
  EXPECT_LT(again.peak(8), kept.peak(8));
  EXPECT_EQ(stage_memory(config, specs[1]).peak(8), last.peak(8));
}

TEST(StageMemoryTest, LayerByLayerTheInputsWaitAndOneLayersGraphIsMade) {
  RunConfig config = small_run();
  const std::vector<StageSpec> specs = *split_model(config.model_spec(), 2);
  const StageMemory kept = stage_memory(config, specs[0]), kept_last = stage_memory(config, specs[1]);
  config.compute.recompute = Recompute::kStage;
  const StageMemory stage = stage_memory(config, specs[0]);
  config.compute.recompute = Recompute::kBlock;
  const StageMemory block = stage_memory(config, specs[0]), last = stage_memory(config, specs[1]);
  EXPECT_EQ(block.inputs, 2 * raw_bytes(config));
  EXPECT_EQ(last.inputs, raw_bytes(config)) << "its first layer reads what was decoded";
  EXPECT_EQ(block.graph, raw_bytes(config) * (16 + 1));
  EXPECT_EQ(block.entry(), block.frames + block.inputs);
  EXPECT_EQ(stage.beside_graph, 0u);
  EXPECT_LT(stage.entry(), block.entry());
  EXPECT_LT(block.peak(8), kept.peak(8));
  EXPECT_LT(last.peak(8), kept_last.peak(8)) << "a last stage too";
}

TEST(StageMemoryTest, FramesAreAsTheirCodecsMakeThem) {
  RunConfig config = small_run();
  config.pipeline.stages = 3;
  const StageSpec spec = split_model(config.model_spec(), 3)->at(1);
  config.compute.recompute = Recompute::kStage;
  const std::uint64_t raw = stage_memory(config, spec).frames;
  EXPECT_NEAR(static_cast<double>(raw), 5.0 * static_cast<double>(raw_bytes(config)), 500)
      << "what came, decoded, what goes on; the gradient, and what goes up";
  config.wire.forward.codecs = config.wire.backward.codecs = {Auto<CodecId>(CodecId::kInt8)};
  EXPECT_LT(stage_memory(config, spec).frames, raw * 3 / 5);
  EXPECT_EQ(stage_memory(config, spec).bases, 0u);
  config.wire.forward.codecs = {Auto<CodecId>(CodecId::kAq4)};
  EXPECT_EQ(stage_memory(config, spec).bases, 2 * config.base_bytes());
}

TEST(StageMemoryTest, AllStagesInOneProcessHaveTheLargestGraphWhereTheyAreMadeAgain) {
  RunConfig config = small_run();
  const std::vector<StageSpec> specs = *split_model(config.model_spec(), 2, {{3, 1}});
  const auto rest = [&] {
    const StageMemory first = stage_memory(config, specs[0]), last = stage_memory(config, specs[1]);
    return kProgramBytes + last.loss + first.frames + last.frames;
  };
  const StageMemory first = stage_memory(config, specs[0]), last = stage_memory(config, specs[1]);
  EXPECT_EQ(solo_bytes(config, specs), rest() + first.graph + last.graph);
  config.compute.recompute = Recompute::kStage;
  EXPECT_EQ(solo_bytes(config, specs), rest() + first.graph + first.passing)
      << "what both were sent, and three layers of the first: the last one has one";
}

TEST(StageMemoryTest, SaysWhatWouldBeNeeded) {
  const RunConfig config = small_run();
  const StageSpec spec = last_stage(config);
  const auto refused = credits_within(stage_memory(config, spec).needed(2) - 1, config, spec);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), ErrorCode::kTooLarge);
  EXPECT_NE(refused.error().message.find("--memory"), std::string::npos);
}

}  // namespace
}  // namespace shoal
