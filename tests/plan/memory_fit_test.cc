// What is left of a machine decides before anything is made.
#include "runtime/plan/memory_fit.h"

#include <gmock/gmock.h>

#include "runtime/plan/stage_memory.h"
#include "tests/plan/small_run.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RunConfig some_config() {
  RunConfig config = small_run();
  config.pipeline.in_flight = std::uint32_t{64};
  return config;
}

TEST(MemoryFitTest, AStageThatDoesNotFitIsRefusedWithBothFigures) {
  const RunConfig config = some_config();
  const StageSpec spec = last_stage(config);
  const std::uint64_t least = process_bytes(config, spec, kCreditsLeast);
  const auto refused = credits_that_fit(least - 1, 16, config, spec);
  ASSERT_EQ(refused.code(), ErrorCode::kTooLarge);
  EXPECT_THAT(refused.error().message, HasSubstr("needs about " + std::to_string((least >> 20) + 1) + " MiB"));
  EXPECT_EQ(credits_that_fit(least, 16, config, spec).value(), kCreditsLeast);
}

TEST(MemoryFitTest, WhereLittleIsLeftFewerMicrobatchesAreTaken) {
  const RunConfig config = some_config();
  const StageSpec spec = last_stage(config);
  EXPECT_EQ(credits_that_fit(process_bytes(config, spec, 10), 16, config, spec).value(), 10u);
  EXPECT_EQ(credits_that_fit(process_bytes(config, spec, 16), 16, config, spec).value(), 16u);
  EXPECT_EQ(credits_that_fit(UINT64_MAX, 16, config, spec).value(), 16u);
}

// Activations that weigh more than the layers, on a first stage: it is the one whose graphs wait.
TEST(MemoryFitTest, ARefusalSaysWhatWouldFit) {
  RunConfig config = some_config();
  config.data.sequences = 256;
  const StageSpec spec = split_model(config.model_spec(), 2)->front();
  RunConfig narrow = config, again = config;
  narrow.compute.dtype = ComputeType::kBf16;
  again.compute.recompute = Recompute::kStage;
  const auto message = [&](std::uint64_t bytes) {
    const auto fit = credits_that_fit(bytes, 16, config, spec);
    return fit.ok() ? "fits" : fit.error().message;
  };
  const std::string again_text = "[compute] recompute = \"stage\" in the run file (",
                    narrow_text = "[compute] dtype = \"bf16\" (";
  EXPECT_THAT(message(process_bytes(config, spec, kCreditsLeast) - 1),
              AllOf(HasSubstr(again_text), HasSubstr(narrow_text)));
  EXPECT_THAT(message(process_bytes(narrow, spec, kCreditsLeast) - 1),
              AllOf(HasSubstr(again_text), Not(HasSubstr(narrow_text))));
  EXPECT_THAT(message(1 << 20), Not(HasSubstr("What would fit")));
}

TEST(MemoryFitTest, MoreStagesAreAskedForWhereTheyWouldDo) {
  RunConfig config = some_config();
  config.model.dim = 512;
  config.pipeline.stages = 1;
  config.pipeline.layers_per_stage = {4};
  config.wire.forward.per_stage = true;  // of the edges of now
  const std::uint64_t two = [&] {
    RunConfig then = config;
    then.pipeline.stages = 2;
    then.wire.forward = {};
    const auto specs = *split_model(then.model_spec(), 2);
    return std::max(process_bytes(then, specs[0], kCreditsLeast), process_bytes(then, specs[1], kCreditsLeast));
  }();
  EXPECT_EQ(stages_within(UINT64_MAX, config), 1);
  EXPECT_EQ(stages_within(two, config), 2);
  EXPECT_GT(stages_within(two - 1, config), 2);
  EXPECT_EQ(stages_within(kProgramBytes, config), std::nullopt);
  const auto refused = credits_that_fit(two, 16, config, split_model(config.model_spec(), 1)->front());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("[pipeline] stages = 2"));
}

TEST(MemoryFitTest, WhatItNeedsIsSaidWithItsParts) {
  const RunConfig config = some_config();
  const StageSpec spec = last_stage(config);
  EXPECT_THAT(needs_text(config, spec, 16, 100 << 20, std::uint64_t{3} << 30),
              AllOf(HasSubstr("stage 1 needs "), HasSubstr("100 MiB the program"),
                    HasSubstr("16 microbatches at a time"), HasSubstr("it has 3072 MiB")));
  EXPECT_THAT(needs_text(config, spec, 16, 100 << 20, std::nullopt), Not(HasSubstr("it has")));
}

TEST(MemoryFitTest, ExecutorsThatNeedNoModelFitEverywhere) {
  RunConfig config = some_config();
  config.executor.kind = ExecutorKind::kInteger;
  EXPECT_EQ(credits_that_fit(0, 16, config, last_stage(config)).value(), 16u);
}

}  // namespace
}  // namespace shoal
