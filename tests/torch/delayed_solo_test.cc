// Training at past weights, against a loop written by hand that moves parameters itself and knows no ring.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "stages/adamw.h"
#include "stages/stage_file.h"
#include "tests/common/letters.h"
#include "tests/torch/tiny_solo.h"

namespace shoal {
namespace {

using Parameters = std::vector<float>;

class DelayedSoloTest : public testing::Test {
 protected:
  DelayedSoloTest() : config_(tiny_solo(folder_, letters(6000, 3), 2, 16, "[end]\nsteps = 7\n")) {}

  // The saved files' bytes by name, and each stage's parameters.
  struct Saved {
    std::map<std::string, std::string> files;
    std::vector<Parameters> stages;
    double validation = 0;
  };
  Saved train(const std::string& name, const std::optional<DelayProfile>& delays) {
    SoloOptions options;
    options.config = config_;
    options.factory = tiny_factory();
    options.save_folder = folder_ / name;
    options.delays = delays;
    Saved saved;
    saved.validation = solo_of(options).validation_loss;
    if (HasFailure()) return saved;
    for (const auto& file : std::filesystem::directory_iterator(options.save_folder))
      saved.files[file.path().filename()] = ScratchFolder::read(file.path());
    const auto model = load_model(options.save_folder);
    EXPECT_TRUE(model.ok());
    for (const LoadedStage& stage : *model) saved.stages.push_back(stage.parameters);
    return saved;
  }

  // Gradients that are always `delays[i]` steps late at stage i, by hand: one array a step, one gradient at a time.
  std::vector<Parameters> by_hand(const std::vector<std::uint64_t>& delays);

  ScratchFolder folder_;
  RunConfig config_;
};

std::vector<Parameters> DelayedSoloTest::by_hand(const std::vector<std::uint64_t>& delays) {
  auto chain = StageChain::make(config_, tiny_factory());
  const auto samples = Samples::open(config_.text_files());
  SampleOrder order = samples->order(config_.run.seed);
  const auto& stages = chain->stages();
  std::vector<std::vector<Parameters>> history(stages.size());  // by stage, after each step
  std::vector<Parameters> moment1, moment2;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto initial = stages[i]->arena().span(ArenaRole::kCurrent);
    history[i].emplace_back(initial.begin(), initial.end());
    moment1.emplace_back(initial.size());
    moment2.emplace_back(initial.size());
  }
  const bool late = std::ranges::any_of(delays, [](std::uint64_t delay) { return delay > 0; });
  const std::uint64_t per_step = config_.microbatches_of_step(0), targets = config_.targets_per_microbatch();
  for (std::uint64_t step = 1; step <= config_.end.steps; ++step) {
    std::vector<Parameters> sums;
    for (const auto& stage : stages) sums.emplace_back(stage->arena().size());
    for (std::uint64_t k = 0; k < per_step; ++k) {
      const std::uint64_t serial = (step - 1) * per_step + k;
      for (std::size_t i = 0; i < stages.size(); ++i) {
        const std::uint64_t made_at = step - 1 - std::min(step - 1, delays[i]);
        std::ranges::copy(history[i][made_at], stages[i]->arena().span(ArenaRole::kCurrent).begin());
        stages[i]->clear_window(WindowSlot::kA);
      }
      EXPECT_TRUE(chain->train(MicrobatchId{0, serial}, samples->tokens(order.at(serial).sample)).ok());
      for (std::size_t i = 0; i < stages.size(); ++i) {
        const auto one = stages[i]->arena().span(ArenaRole::kAccumulatorA);
        for (std::size_t j = 0; j < one.size(); ++j) sums[i][j] += one[j];
      }
    }
    const InnerStep inner = config_.inner_step(step, per_step * targets, step * per_step * targets, late);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      Parameters next(sums[i].size());
      AdamWArrays arrays;
      arrays.parameters = history[i].back();
      arrays.gradient_sum = sums[i];
      arrays.moment1 = arrays.moment1_out = moment1[i];
      arrays.moment2 = arrays.moment2_out = moment2[i];
      arrays.parameters_out = next;
      EXPECT_TRUE(adamw_step(parameters_of(stages[i]->spec()), inner, arrays).ok());
      history[i].push_back(std::move(next));
    }
  }
  std::vector<Parameters> last;
  for (const auto& stage : history) last.push_back(stage.back());
  return last;
}

DelayProfile constant(const std::vector<std::uint64_t>& delays) {
  DelayProfile profile;
  for (const std::uint64_t delay : delays) {
    profile.stages.emplace_back();
    profile.stages.back().add(delay, 1);
  }
  return profile;
}

TEST_F(DelayedSoloTest, WithoutDelayEveryByteIsAsWithoutAProfile) {
  const Saved plain = train("plain", std::nullopt);
  const Saved zero = train("zero", constant({0, 0}));
  ASSERT_GE(plain.files.size(), 4u);
  EXPECT_EQ(plain.files, zero.files);
  EXPECT_EQ(plain.validation, zero.validation);
  EXPECT_EQ(plain.stages, by_hand({0, 0}));
}

TEST_F(DelayedSoloTest, AConstantDelayIsDelayedAdamWToTheLastBit) {
  const Saved plain = train("plain", std::nullopt);
  for (const std::vector<std::uint64_t>& delays : {std::vector<std::uint64_t>{1, 1}, {3, 1}, {0, 2}}) {
    const Saved late = train("late" + std::to_string(delays[0]), constant(delays));
    EXPECT_EQ(late.stages, by_hand(delays)) << delays[0] << " " << delays[1];
    EXPECT_NE(late.stages, plain.stages);
  }
}

TEST_F(DelayedSoloTest, TheSameSeedDrawsTheSameDelays) {
  DelayProfile mixed;
  mixed.stages = {DelayHistogram::of(std::vector<std::uint64_t>{1, 2, 1}),
                  DelayHistogram::of(std::vector<std::uint64_t>{1, 1})};
  const Saved first = train("first", mixed), again = train("again", mixed);
  EXPECT_EQ(first.files, again.files);
  EXPECT_NE(first.stages, by_hand({1, 0}));
}

}  // namespace
}  // namespace shoal
