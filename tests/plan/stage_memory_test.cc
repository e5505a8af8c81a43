// What `--memory` allows.
#include "runtime/plan/stage_memory.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/plan/small_run.h"

namespace shoal {
namespace {

TEST(StageMemoryTest, CreditsFollowTheMemoryLeftBesideTheStage) {
  const RunConfig config = small_run();
  const StageSpec spec = last_stage(config);
  const std::uint64_t fixed = stage_bytes(config, spec) + loss_bytes(config, spec), each = entry_bytes(config, spec);
  EXPECT_EQ(credits_within(fixed + 2 * each, config, spec).value(), 2u);
  EXPECT_EQ(credits_within(fixed + 10 * each - 1, config, spec).value(), 9u);
  EXPECT_EQ(credits_within(fixed + 1000 * each, config, spec).value(), kCreditsMax);
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

TEST(StageMemoryTest, AProcessTakesItsOwnTheStageAndItsMicrobatches) {
  RunConfig config = small_run();
  const StageSpec spec = last_stage(config);
  EXPECT_EQ(stage_bytes(config, spec), 60 * parameter_count(spec));
  const std::uint64_t loss = loss_bytes(config, spec);
  EXPECT_EQ(loss, 8u * 256 * (config.data.sequences * 64 + 64)) << "few tokens: all of their logits at once";
  config.pipeline.in_flight = std::uint32_t{20};
  EXPECT_EQ(process_bytes(config, spec, 16),
            kProgramBytes + stage_bytes(config, spec) + loss + 16 * entry_bytes(config, spec));
  config.pipeline.in_flight = std::uint32_t{4};
  EXPECT_EQ(process_bytes(config, spec, 16),
            kProgramBytes + stage_bytes(config, spec) + loss + 4 * entry_bytes(config, spec))
      << "the run has no more of them";
  config.executor.kind = ExecutorKind::kPaced;
  EXPECT_EQ(process_bytes(config, spec, 16), 0u) << "its arrays are of any size";
}

TEST(StageMemoryTest, Bf16KeepsCopiesOfTheWeightsAndLessOfEachMicrobatch) {
  RunConfig config = small_run();
  const StageSpec spec = last_stage(config);
  const std::uint64_t wide = entry_bytes(config, spec);
  config.compute.dtype = ComputeType::kBf16;
  EXPECT_EQ(stage_bytes(config, spec), 66 * parameter_count(spec));
  EXPECT_LT(entry_bytes(config, spec), wide * 3 / 4);
  EXPECT_GT(entry_bytes(config, spec), wide / 2);
}

TEST(StageMemoryTest, WithoutKeptGraphsOneIsThereAtATime) {
  RunConfig config = small_run();
  const std::vector<StageSpec> specs = *split_model(config.model_spec(), 2);
  const std::uint64_t stage = stage_bytes(config, specs[0]), entry = entry_bytes(config, specs[0]);
  const std::uint64_t of_last = entry_bytes(config, specs[1]);
  config.compute.recompute = Recompute::kStage;
  EXPECT_EQ(stage_bytes(config, specs[0]) + entry_bytes(config, specs[0]), stage + entry);
  EXPECT_EQ(entry_bytes(config, specs[0]), 16u * specs[0].model.dim * config.targets_per_microbatch());
  EXPECT_EQ(entry_bytes(config, specs[1]), of_last) << "its backward follows at once";
}

TEST(StageMemoryTest, AllStagesInOneProcessHaveTheLargestGraphWhereTheyAreMadeAgain) {
  RunConfig config = small_run();
  const std::vector<StageSpec> specs = *split_model(config.model_spec(), 2, {{3, 1}});
  const std::uint64_t first = entry_bytes(config, specs[0]), last = entry_bytes(config, specs[1]);
  const std::uint64_t rest = kProgramBytes + loss_bytes(config, specs[1]);
  EXPECT_EQ(solo_bytes(config, specs), rest + first + last);
  config.compute.recompute = Recompute::kStage;
  EXPECT_EQ(solo_bytes(config, specs), rest + first + entry_bytes(config, specs[0]))
      << "what both were sent, and three layers of the first: the last one has one";
}

TEST(StageMemoryTest, SaysWhatWouldBeNeeded) {
  const RunConfig config = small_run();
  const StageSpec spec = last_stage(config);
  const auto refused = credits_within(
      stage_bytes(config, spec) + loss_bytes(config, spec) + 2 * entry_bytes(config, spec) - 1, config, spec);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), ErrorCode::kTooLarge);
  EXPECT_NE(refused.error().message.find("--memory"), std::string::npos);
}

}  // namespace
}  // namespace shoal
