// The exact executors: the contract, and what makes them exact.
#include <gmock/gmock.h>

#include "kernels/int8_tiles.h"
#include "stages/integer_executor.h"
#include "stages/paced_executor.h"
#include "tests/stages/boundary_model.h"
#include "tests/stages/executor_contract.h"
#include "tests/stages/text_contract.h"

namespace shoal {
namespace {

ExecutorMaker integer_maker() {
  return {"integer", [](const StageSpec& spec) { return std::make_unique<IntegerExecutor>(spec); }, 0};
}
ExecutorMaker paced_maker() {
  return {"paced",
          [](const StageSpec& spec) {
            return std::make_unique<PacedExecutor>(spec, Pace{1ms, 2ms, 1ms}, [](Duration) {});
          },
          0};
}
INSTANTIATE_TEST_SUITE_P(Exact, ExecutorContract,
                         ::testing::Values(integer_maker(), paced_maker(), with_boundary(integer_maker())),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Exact, TextContract,
                         ::testing::Values(integer_maker(), paced_maker(), with_boundary(integer_maker())),
                         [](const auto& info) { return info.param.name; });

TEST(IntegerExecutorTest, TheParametersAreMinusTheSumOfWhatWasCounted) {
  Chain chain(integer_maker(), contract_model(), 3);
  IntegerGradient expected{};
  for (std::uint64_t serial = 1; serial <= 40; ++serial) {
    chain.count(serial, serial % 2 == 0 ? kA : kB);
    if (serial % 3 == 0) {
      ASSERT_TRUE(*chain.at(1).undo(serial));
    } else {
      chain.at(1).settle(serial);
      const IntegerGradient gradient = integer_gradient(microbatch(serial), StageId(1), chain.at(1).stamp());
      for (std::size_t i = 0; i < gradient.size(); ++i) expected[i] -= gradient[i];
    }
    if (serial % 10 == 0) {
      ASSERT_TRUE(chain.at(1).inner_step(kA, contract_step()).ok());
      ASSERT_TRUE(chain.at(1).inner_step(kB, contract_step()).ok());
    }
  }
  EXPECT_THAT(chain.read(1, ArenaRole::kCurrent), ::testing::ElementsAreArray(expected));
}

TEST(IntegerExecutorTest, GradientsDifferByMicrobatchStageAndStamp) {
  const IntegerGradient one = integer_gradient(microbatch(1), StageId(0), 0);
  EXPECT_NE(one, integer_gradient(microbatch(2), StageId(0), 0));
  EXPECT_NE(one, integer_gradient(microbatch(1), StageId(1), 0));
  EXPECT_NE(one, integer_gradient(microbatch(1), StageId(0), 1));
  for (const float value : one) {
    EXPECT_EQ(value, std::round(value));
    EXPECT_LE(std::abs(value), 64);
  }
}

// A sum tells of each gradient in it at which weights it was made.
TEST(IntegerExecutorTest, AnUndoAtOtherWeightsLeavesTheDifferenceOfTheTwoGradients) {
  Chain chain(integer_maker(), contract_model(), 3);
  chain.count(1, kB);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(chain.at(1).inner_step(kA, contract_step()).ok());  // too early: not settled
  EXPECT_FALSE(*chain.at(1).undo(1));
  const IntegerGradient counted = integer_gradient(microbatch(1), StageId(1), 0),
                        taken_out = integer_gradient(microbatch(1), StageId(1), 2);
  const std::vector<float> left = chain.read(1, ArenaRole::kAccumulatorB);
  for (std::size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i], counted[i] - taken_out[i]);
  EXPECT_NE(counted, taken_out);
}

TEST(IntegerExecutorTest, ABackwardIsMadeAtTheWeightsThatItsForwardSaw) {
  Chain chain(integer_maker(), contract_model(), 3);
  chain.forward(1);
  for (std::size_t k = 0; k < chain.size(); ++k) ASSERT_TRUE(chain.at(k).inner_step(kA, contract_step()).ok());
  chain.backward(1, kB);
  for (std::size_t k = 0; k < chain.size(); ++k)
    EXPECT_THAT(
        chain.read(k, ArenaRole::kAccumulatorB),
        ::testing::ElementsAreArray(integer_gradient(microbatch(1), StageId(static_cast<std::uint16_t>(k)), 0)));
}

TEST(IntegerExecutorTest, RefusesAnActivationOfAnotherStageMicrobatchOrText) {
  Chain chain(integer_maker(), contract_model(), 3);
  chain.forward(1);
  chain.forward(2);
  auto& last = dynamic_cast<IntegerExecutor&>(chain.at(2));
  const HostTensor right = chain.activations[2], skipped = chain.activations[1];
  const auto code = [&](std::uint64_t serial, std::uint64_t text, const HostTensor& x) {
    return pass_forward(last, {99, microbatch(serial), contract_tokens(text)}, x).code();
  };
  EXPECT_EQ(code(2, 2, skipped), ErrorCode::kMalformed) << "stage 1 was skipped";
  EXPECT_EQ(code(1, 1, right), ErrorCode::kMalformed) << "another microbatch's";
  EXPECT_EQ(code(2, 1, right), ErrorCode::kMalformed) << "tokens of another sample";
  EXPECT_EQ(last.mismatches(), 3u);
  EXPECT_TRUE(pass_forward(last, {99, microbatch(2), contract_tokens(2)}, right).ok());
  EXPECT_EQ(last.mismatches(), 3u);
}

TEST(IntegerExecutorTest, RefusesAGradientOfAnotherStage) {
  Chain chain(integer_maker(), contract_model(), 3);
  chain.count(1, kA);
  chain.forward(2);
  EXPECT_EQ(pass_backward(chain.at(0), 2, chain.gradients[1], kA).code(), ErrorCode::kMalformed);
  EXPECT_EQ(pass_backward(chain.at(0), 2, chain.gradients[0], kA).code(), ErrorCode::kMalformed) << "microbatch 1's";
  EXPECT_EQ(chain.tag(0, ArenaRole::kAccumulatorA), count_tag(microbatch(1)));
}

// With 127 at the start of every tile the scale is 1: a chain stays exact over the int8 codec.
TEST(IntegerExecutorTest, FramesSurviveTilesOfEightBits) {
  Chain chain(integer_maker(), contract_model(), 3);
  chain.count(1, kA);
  for (const HostTensor& tensor :
       {chain.activations[1], chain.activations[2], chain.gradients[0], chain.gradients[1]}) {
    const std::span<const float> values = tensor.f32();
    std::vector<std::int8_t> codes(values.size());
    std::vector<float> scales(int8_tile_count(values.size())), decoded(values.size());
    int8_quantise(values, codes, scales);
    int8_dequantise(codes, scales, decoded);
    EXPECT_TRUE(std::ranges::equal(decoded, values));
  }
}

// It does not wait, but adds to `spent`.
ExecutorMaker paced_maker(Duration& spent) {
  const auto make = [&spent](const StageSpec& spec) {
    return std::make_unique<PacedExecutor>(spec, Pace{3ms, 50ms, 700ms}, [&spent](Duration d) { spent += d; });
  };
  return {"paced", make, 0};
}

TEST(PacedExecutorTest, SpendsTheDurationsOfWhatItRan) {
  Duration spent{};
  Chain chain(paced_maker(spent), contract_model(), 1);
  const auto spent_by = [&](auto&& action) {
    spent = {};
    action();
    return spent;
  };
  EXPECT_EQ(spent_by([&] { chain.forward(1); }), 3ms);
  EXPECT_EQ(spent_by([&] { chain.backward(1, kA); }), 50ms);
  EXPECT_EQ(spent_by([&] { EXPECT_TRUE(chain.at(0).undo(1).ok()); }), 53ms);
  EXPECT_EQ(spent_by([&] { EXPECT_TRUE(chain.at(0).inner_step(kA, contract_step()).ok()); }), 700ms);
  dynamic_cast<PacedExecutor&>(chain.at(0)).set_pace({9ms, 0ms, 0ms});
  EXPECT_EQ(spent_by([&] { chain.forward(2); }), 9ms);
}

TEST(PacedExecutorTest, ARecomputedBackwardCostsBoth) {
  Duration spent{};
  Chain chain(paced_maker(spent), contract_model(), 1);
  chain.forward(1);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(chain.at(0).inner_step(kA, contract_step()).ok());
  spent = {};
  chain.backward(1, kA);
  EXPECT_EQ(spent, 53ms);
}

TEST(PacedExecutorTest, FramesHaveTheModelsShape) {
  ModelSpec model = contract_model();
  model.dim = 64;
  Chain chain(paced_maker(), model, 2);
  chain.forward(1);
  EXPECT_EQ(chain.activations[1].shape, (Shape{2, 8, 64}));
}

using ExecutorDeathTest = ::testing::Test;
TEST(ExecutorDeathTest, ABugThatCountsTwiceStopsTheProgram) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  Chain chain(integer_maker(), contract_model(), 1);
  chain.count(1, kA);
  EXPECT_DEATH((void)pass_backward(chain.at(0), 1, {}, kA), "counted");
  EXPECT_DEATH(chain.at(0).drop(1), "counted");
  EXPECT_DEATH(chain.at(0).flip(), "writing_");
}

}  // namespace
}  // namespace shoal
