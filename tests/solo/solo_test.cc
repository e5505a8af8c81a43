#include "runtime/solo/solo.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "runtime/solo/saved_model.h"
#include "tests/events/kept_events.h"
#include "tests/solo/solo_rig.h"
#include "tests/stages/step_recorder.h"

namespace shoal {
namespace {

class SoloTest : public SoloRig {};

TEST_F(SoloTest, TrainsExactlyTheMicrobatchesOfTheRun) {
  std::vector<TrainLine> lines;
  SoloOptions options;
  options.config = config("[sync]\ninner_batch = 64\n[end]\ntokens = 500\n");  // 4 microbatches of 32 a step, 16 in all
  options.factory = factory();
  options.on_step = [&](const TrainLine& line) { lines.push_back(line); };
  const auto result = run_solo(options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->tokens, 512u);
  EXPECT_EQ(result->steps, 4u);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].steps, 4u);
  EXPECT_EQ(lines[1].tokens, 256u);
  EXPECT_FALSE(result->interrupted);
  EXPECT_GT(result->validation_targets, 0u);
  // The executor's loss of a microbatch is known: the curve is the mean over each step's.
  double first = 0;
  for (std::uint64_t serial = 0; serial < 4; ++serial) first += integer_loss(MicrobatchId{0, serial}, 32);
  EXPECT_DOUBLE_EQ(result->losses.first(), first / 128);
}

TEST_F(SoloTest, ThePartialLastStepIsFlushed) {
  SoloOptions options;
  options.config = config("[sync]\nrule = \"allreduce\"\nmicrobatches_per_step = 5\n[end]\ntokens = 224\n");
  options.factory = factory();
  const auto result = run_solo(options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->tokens, 224u);
  EXPECT_EQ(result->steps, 2u);
}

TEST_F(SoloTest, ParametersHoldTheSumOfAllGradientsAtEveryStage) {
  const RunConfig run = config("[sync]\nrule = \"allreduce\"\nmicrobatches_per_step = 3\n[end]\nsteps = 4\n");
  auto chain = StageChain::make(run, factory());
  ASSERT_TRUE(chain.ok()) << chain.error().message;
  const auto samples = Samples::open(run.text_files());
  for (std::uint64_t serial = 0; serial < 6; ++serial) {
    ASSERT_TRUE(chain->train(MicrobatchId{3, serial}, samples->tokens(SampleId{serial})).ok());
    if (serial % 3 == 2) {
      ASSERT_TRUE(chain->step(run.inner_step(serial / 3 + 1, 96, 96, false)).ok());
    }
  }
  chain->publish();
  for (std::uint16_t stage = 0; stage < 4; ++stage) {
    IntegerGradient expected{};
    CountTag tag = 0;
    for (std::uint64_t serial = 0; serial < 6; ++serial) {
      const IntegerGradient one = integer_gradient(MicrobatchId{3, serial}, StageId{stage}, serial / 3);
      for (std::size_t i = 0; i < one.size(); ++i) expected[i] -= one[i];
      tag += count_tag(MicrobatchId{3, serial});
    }
    Arena& arena = chain->stages()[stage]->arena();
    EXPECT_TRUE(std::ranges::equal(arena.span(ArenaRole::kAnchor), expected)) << stage;
    EXPECT_EQ(arena.tag(ArenaRole::kAnchor), tag);
    EXPECT_EQ(executors_[stage]->mismatches(), 0u);
    EXPECT_EQ(executors_[stage]->entry_count(), 0u);
  }
}

// Its gradients are never late, whatever the mode says of the swarm that it is compared with.
TEST_F(SoloTest, LooksAheadOnlyWhenANumberIsGiven) {
  for (const auto& [text, wanted] : {std::pair("\"auto\"", 0.0), std::pair("0", 0.0), std::pair("1.5", 1.5)}) {
    std::vector<InnerStep> steps;
    SoloOptions options;
    options.config = config(std::string("[optimizer]\nlook_ahead = ") + text +
                            "\n[sync]\nmode = \"overlap\"\ninner_batch = 64\n[end]\ntokens = 384\n");
    options.factory = [&](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      return std::unique_ptr<StageExecutor>(std::make_unique<StepRecorder>(spec, steps));
    };
    const auto result = run_solo(options);
    ASSERT_TRUE(result.ok()) << result.error().message;
    ASSERT_EQ(steps.size(), 12u) << "3 steps of 4 stages";
    for (const InnerStep& step : steps) {
      EXPECT_EQ(step.look_ahead, step.step == 1 ? 0.0 : wanted) << text;
      EXPECT_EQ(step.look_ahead_before, step.step <= 2 ? 0.0 : wanted) << text;
    }
  }
}

TEST_F(SoloTest, StopsInOrderWhenAsked) {
  int asked = 0;
  SoloOptions options;
  options.config = config("[sync]\ninner_batch = 64\n");  // no end
  options.factory = factory();
  options.stop = [&] { return ++asked > 30; };
  const auto result = run_solo(options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(result->interrupted);
  EXPECT_GT(result->steps, 1u);
  EXPECT_GT(result->validation_targets, 0u);
  EXPECT_EQ(result->tokens % 32, 0u);
}

TEST_F(SoloTest, ValidationIsCappedWhenTheRunSaysSo) {
  SoloOptions options;
  options.config = config("[sync]\ninner_batch = 64\n[end]\nsteps = 1\n");
  options.factory = factory();
  const auto all = run_solo(options);
  options.config.data.validation_samples = 3;
  const auto capped = run_solo(options);
  EXPECT_EQ(all->validation_targets, 12u * 32);
  EXPECT_EQ(capped->validation_targets, 3u * 32);
}

TEST_F(SoloTest, EstimatesTheValidationLossWhileItTrainsAndTrainsTheSame) {
  SoloOptions options;
  options.config = config("[end]\nsteps = 5\n[sync]\ninner_batch = 64\n");
  options.factory = factory();
  const auto plain = run_solo(options);
  options.config.data.validate_every = 2;
  std::vector<bool> told;
  options.on_step = [&](const TrainLine& line) { told.push_back(line.validation.has_value()); };
  const auto often = run_solo(options);
  ASSERT_TRUE(plain.ok() && often.ok());
  EXPECT_EQ(often->losses.steps(), plain->losses.steps());
  EXPECT_EQ(often->validation_loss, plain->validation_loss);
  EXPECT_THAT(told, testing::ElementsAre(false, false, true, true, true));
}

TEST_F(SoloTest, TellsItsStoryInEvents) {
  test::KeptEvents events;
  SoloOptions options;
  options.config = config("[end]\nsteps = 2\n[sync]\ninner_batch = 64\n");
  options.factory = factory();
  options.events = &events;
  const auto result = run_solo(options);
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(events.kinds, testing::ElementsAre(EventKind::kStart, EventKind::kTrain, EventKind::kTrain,
                                                 EventKind::kValidation, EventKind::kEnd));
  const auto json = nlohmann::json::parse(solo_json(*result));
  EXPECT_EQ(json["tokens"], 256);
  EXPECT_NEAR(json["unigram_entropy"].get<double>(), 3.0, 0.05);  // ln 20
}

TEST_F(SoloTest, SaysWhatItCannotSaveOrRead) {
  SoloOptions options;
  options.config = config("[sync]\ninner_batch = 64\n[end]\nsteps = 1\n");
  options.factory = factory();
  options.save_folder = folder_ / "saved";
  const auto unsaved = run_solo(options);
  ASSERT_FALSE(unsaved.ok());
  EXPECT_EQ(unsaved.code(), ErrorCode::kUnsupported);
  options.config.data.paths = {folder_ / "absent.bin"};
  EXPECT_EQ(run_solo(options).code(), ErrorCode::kMissing);
  EXPECT_EQ(load_saved_config(folder_ / "nowhere").code(), ErrorCode::kMissing);
}

TEST(TrainLineTest, TheEndOfACurveIsItsLastTenth) {
  LossCurve curve;
  EXPECT_EQ(curve.last(), 0);
  for (int i = 0; i < 30; ++i) curve.add(i);
  EXPECT_EQ(curve.first(), 0);
  EXPECT_EQ(curve.last(), 28);
}

}  // namespace
}  // namespace shoal
