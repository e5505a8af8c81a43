#include "runtime/solo/delayed_weights.h"

#include <gmock/gmock.h>

#include "runtime/solo/solo.h"
#include "tests/solo/solo_rig.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kTargets = 32;  // of a microbatch

DelayProfile profile_of(const std::vector<std::vector<std::uint64_t>>& counts) {
  DelayProfile profile;
  for (const auto& stage : counts) profile.stages.push_back(DelayHistogram::of(stage));
  return profile;
}

class DelayedWeightsTest : public SoloRig {
 protected:
  DelayedWeightsTest() : config_(config("[sync]\ninner_batch = 64\n[end]\nsteps = 6\n", 2, 1)) {}

  Samples samples() const { return *Samples::open(config_.text_files()); }

  static std::vector<float> current(const StageChain& chain, std::size_t stage) {
    const auto values = chain.stages()[stage]->arena().span(ArenaRole::kCurrent);
    return {values.begin(), values.end()};
  }

  RunConfig config_;
};

TEST_F(DelayedWeightsTest, EachStageMeetsItsParametersOfThatManyStepsAgo) {
  auto chain = StageChain::make(config_, factory());
  ASSERT_TRUE(chain.ok());
  auto delayed = DelayedWeights::make(*chain, profile_of({{0, 0, 0, 1}, {0, 1}}), 1);
  ASSERT_TRUE(delayed.ok()) << delayed.error().message;
  EXPECT_EQ(delayed->bytes(), (4 + 2) * kIntegerParameters * sizeof(float));
  const Samples text = samples();
  std::vector<std::vector<float>> first{current(*chain, 0)}, second{current(*chain, 1)};  // after each step
  CountTag tag = 0;
  for (std::uint64_t step = 0; step < 8; ++step) {
    for (std::uint64_t i = 0; i < 2; ++i) {
      const MicrobatchId microbatch{0, 2 * step + i};
      delayed->meet(microbatch, kTargets);
      EXPECT_EQ(current(*chain, 0), first[step < 3 ? 0 : step - 3]) << step;
      EXPECT_EQ(current(*chain, 1), second[step < 1 ? 0 : step - 1]) << step;
      ASSERT_TRUE(chain->train(microbatch, text.tokens(SampleId{0})).ok());
      tag += count_tag(microbatch);
    }
    delayed->to_newest();
    EXPECT_EQ(current(*chain, 0), first.back());
    ASSERT_TRUE(chain->step(config_.inner_step(step + 1, 2 * kTargets, 64, true)).ok());
    delayed->stepped();
    first.push_back(current(*chain, 0));
    second.push_back(current(*chain, 1));
    ASSERT_NE(first.back(), first[step]);
  }
  EXPECT_EQ(delayed->used()[0], DelayHistogram::of(std::vector<std::uint64_t>{64, 64, 64, 5 * 64}));
  EXPECT_EQ(delayed->used()[1], DelayHistogram::of(std::vector<std::uint64_t>{64, 7 * 64}));
  for (const auto& stage : chain->stages()) {
    EXPECT_EQ(stage->stamp(), 8u);
    EXPECT_EQ(stage->arena().tag(ArenaRole::kCurrent), tag);
  }
}

TEST_F(DelayedWeightsTest, DrawsFollowTheCountsAndAreLateEverywhereOrNowhere) {
  auto chain = StageChain::make(config_, factory());
  ASSERT_TRUE(chain.ok());
  auto delayed = DelayedWeights::make(*chain, profile_of({{3, 1}, {3, 0, 1}}), 7);
  ASSERT_TRUE(delayed.ok());
  for (int step = 0; step < 3; ++step) delayed->stepped();
  constexpr std::uint64_t kDraws = 4000;
  for (std::uint64_t serial = 0; serial < kDraws; ++serial) delayed->meet(MicrobatchId{0, serial}, 1);
  const auto first = delayed->used()[0].counts(), second = delayed->used()[1].counts();
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 3u);
  EXPECT_NEAR(static_cast<double>(first[1]), kDraws / 4.0, 120);  // more than four standard deviations
  EXPECT_EQ(first[1], second[2]);
}

TEST_F(DelayedWeightsTest, RefusesWhatDoesNotFitTheRun) {
  const auto chain = StageChain::make(config_, factory());
  ASSERT_TRUE(chain.ok());
  const auto stages = DelayedWeights::make(*chain, profile_of({{1}, {1}, {1}}), 1);
  EXPECT_EQ(stages.code(), ErrorCode::kInput);
  EXPECT_THAT(stages.error().message, testing::AllOf(HasSubstr("3 stages, the run has 2"), HasSubstr("HINT")));
  const DelayProfile late = profile_of({{1, 1, 1}, {1}});
  constexpr std::uint64_t kNeeded = 3 * kIntegerParameters * sizeof(float);
  EXPECT_TRUE(DelayedWeights::make(*chain, late, 1, kNeeded).ok());
  const auto large = DelayedWeights::make(*chain, late, 1, kNeeded - 1);
  EXPECT_EQ(large.code(), ErrorCode::kTooLarge);
  EXPECT_THAT(large.error().message, testing::AllOf(HasSubstr("past parameters"), HasSubstr("HINT")));
}

TEST_F(DelayedWeightsTest, SoloCountsWhatItReplayedAndTellsItsMemory) {
  std::vector<std::string> notes;
  SoloOptions options;
  options.config = config_;
  options.factory = factory();
  options.on_note = [&](const std::string& text) { notes.push_back(text); };
  const auto plain = run_solo(options);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_TRUE(plain->delays.empty());
  EXPECT_THAT(solo_json(*plain), testing::Not(HasSubstr("delay_means")));
  options.delays = profile_of({{0, 0, 1}, {1}});
  options.delays->inner_batch = 4096;
  notes.clear();
  const auto late = run_solo(options);
  ASSERT_TRUE(late.ok()) << late.error().message;
  EXPECT_EQ(late->steps, 6u);
  EXPECT_EQ(late->delays[0], DelayHistogram::of(std::vector<std::uint64_t>{64, 64, 4 * 64}));
  EXPECT_EQ(late->delays[1], DelayHistogram::of(std::vector<std::uint64_t>{6 * 64}));
  EXPECT_THAT(solo_json(*late), HasSubstr("delay_means"));
  ASSERT_GE(notes.size(), 2u);
  EXPECT_THAT(notes[0],
              testing::AllOf(HasSubstr("stage 0 by 2.00 steps (at most 2), stage 1 by 0.00"), HasSubstr("MiB")));
  EXPECT_THAT(notes[1], HasSubstr("measured at inner steps of 4096 targets, this run's have 64"));
  options.delays = profile_of({{1}});
  EXPECT_EQ(run_solo(options).code(), ErrorCode::kInput);
}

}  // namespace
}  // namespace shoal
