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
    return std::max(least_bytes(then, specs[0]), least_bytes(then, specs[1]));
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

// ---- [compute] recompute = "auto" ----
// Activations that weigh more than the layers, on a first stage of three layers, whose graphs wait.
class RecomputeChoiceTest : public testing::Test {
 protected:
  RecomputeChoiceTest() {
    config_.data.sequences = 64;
    config_.pipeline.layers_per_stage = {3, 1};
    spec_ = split_model(config_.model_spec(), 2, config_.pipeline.layers_per_stage)->front();
  }
  std::uint64_t needed(Recompute recompute, std::size_t credits = 16) const {
    return process_bytes(with_recompute(config_, recompute), spec_, credits);
  }
  Result<Room> with_free(std::optional<std::uint64_t> bytes, std::size_t credits = 16) const {
    return room_for(config_, spec_, credits, 0, kProgramBytes, bytes);
  }

  RunConfig config_ = some_config();
  StageSpec spec_;
};

TEST_F(RecomputeChoiceTest, GraphsAreKeptWhereTheShareInFlightFits) {
  const Room room = with_free(needed(Recompute::kNone)).value();
  EXPECT_EQ(room.recompute, Recompute::kNone);
  EXPECT_EQ(room.credits, 16u);
  EXPECT_THAT(room.text, HasSubstr("; recompute = \"auto\" takes \"none\""));
  EXPECT_EQ(with_free(std::nullopt)->recompute, Recompute::kNone) << "nothing is known";
}

TEST_F(RecomputeChoiceTest, AByteLessAndTheyAreMadeAgain) {
  const std::uint64_t free_bytes = needed(Recompute::kNone) - 1;
  const Room room = with_free(free_bytes).value();
  EXPECT_EQ(room.recompute,
            needed(Recompute::kStage) < needed(Recompute::kBlock) ? Recompute::kStage : Recompute::kBlock);
  EXPECT_EQ(room.credits, 16u);
  EXPECT_THAT(room.text, AllOf(HasSubstr("it has " + mebibyte_text(free_bytes)),
                               HasSubstr(", since \"none\" needs " + mebibyte_text(free_bytes + 1))));
}

// Their peaks cross: with few entries one layer's graph at a time is less, with many what layers read outweighs it.
TEST_F(RecomputeChoiceTest, OfBothWaysTheOneWithMoreRoomIsTaken) {
  ASSERT_LT(needed(Recompute::kBlock, 2), needed(Recompute::kStage, 2));
  ASSERT_GT(needed(Recompute::kBlock, 32), needed(Recompute::kStage, 32));
  EXPECT_EQ(with_free(needed(Recompute::kBlock, 2), 32)->recompute, Recompute::kBlock);
  EXPECT_EQ(with_free(needed(Recompute::kStage, 32), 32)->recompute, Recompute::kStage);
  EXPECT_EQ(with_free(needed(Recompute::kStage, 32), 32)->credits, 32u);
}

TEST_F(RecomputeChoiceTest, WhatDoesNotFitAnyWayIsRefusedByTheSmallest) {
  const std::uint64_t least = least_bytes(config_, spec_);
  EXPECT_EQ(least, needed(Recompute::kBlock, kCreditsLeast));
  EXPECT_TRUE(with_free(least).ok());
  const auto refused = with_free(least - 1);
  ASSERT_EQ(refused.code(), ErrorCode::kTooLarge);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("needs about " + mebibyte_text(least)), Not(HasSubstr("[compute] recompute"))));
}

TEST_F(RecomputeChoiceTest, WhatTheOwnerAllowsBoundsItToo) {
  const std::uint64_t none = needed(Recompute::kNone) - kProgramBytes;
  const auto allowed = [&](std::uint64_t bytes) {
    return room_for(config_, spec_, 16, bytes, kProgramBytes, {}).value();
  };
  EXPECT_EQ(allowed(none).recompute, Recompute::kNone);
  EXPECT_NE(allowed(none - 1).recompute, Recompute::kNone);
  EXPECT_GE(allowed(none - 1).credits, 16u);
  EXPECT_THAT(allowed(none).text, HasSubstr("--memory allows " + mebibyte_text(none)));
}

TEST_F(RecomputeChoiceTest, WhatTheRunSaysIsNoChoice) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kBlock, Recompute::kStage}) {
    config_.compute.recompute = recompute;
    const Room room = with_free(needed(Recompute::kNone) - 1).value();
    EXPECT_EQ(room.recompute, recompute);
    EXPECT_THAT(room.text, Not(HasSubstr("auto")));
  }
}

// A last stage keeps no graph waiting, and makes one a layer at a time only where that leaves room for more.
TEST_F(RecomputeChoiceTest, ALastStageMakesItsGraphLayerByLayer) {
  config_.pipeline.layers_per_stage = {1, 3};
  spec_ = split_model(config_.model_spec(), 2, config_.pipeline.layers_per_stage)->back();
  EXPECT_EQ(needed(Recompute::kStage), needed(Recompute::kNone));
  EXPECT_EQ(with_free(needed(Recompute::kNone))->recompute, Recompute::kNone);
  EXPECT_EQ(with_free(needed(Recompute::kNone) - 1)->recompute, Recompute::kBlock);
}

TEST(MemoryFitTest, ExecutorsThatNeedNoModelFitEverywhere) {
  RunConfig config = some_config();
  config.executor.kind = ExecutorKind::kInteger;
  EXPECT_EQ(credits_that_fit(0, 16, config, last_stage(config)).value(), 16u);
}

}  // namespace
}  // namespace shoal
