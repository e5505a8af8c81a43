// [compute]: bf16 beside fp32, the same model within bf16's bits; graphs that are made again, with the same bits.
#include <gtest/gtest.h>

#include "stages/torch_executor.h"
#include "tests/stages/chain.h"

namespace shoal {
namespace {

ExecutorMaker maker_of(ComputeType compute, Recompute recompute = Recompute::kNone) {
  return {"", [=](const StageSpec& spec) -> std::unique_ptr<StageExecutor> {
            return std::move(*make_torch_executor(spec, {.device = "cpu", .compute = compute, .recompute = recompute}));
          }};
}

ModelSpec four_layers(ModelFamily family, AttentionExtras extras) {
  ModelSpec model = contract_model();
  model.layers = 4;
  model.family = family;
  model.extras = extras;
  if (family == ModelFamily::kLlama) model.kv_heads = 1;
  return model;
}

// On one text, again and again.
void train(Chain& chain, std::uint64_t steps) {
  InnerStep step = contract_step();
  for (step.step = 1; step.step <= steps; ++step.step) {
    chain.count(100, kA);
    for (std::size_t k = 0; k < chain.size(); ++k) {
      chain.at(k).settle(100);
      ASSERT_TRUE(chain.at(k).inner_step(kA, step).ok());
    }
  }
}

class Bf16Test : public testing::TestWithParam<std::pair<ModelFamily, AttentionExtras>> {
 protected:
  ModelSpec model = four_layers(GetParam().first, GetParam().second);
  Chain wide{maker_of(ComputeType::kFp32), model, 2}, narrow{maker_of(ComputeType::kBf16), model, 2};
};

// It has 8 bits: products are some thousandths off, and no more.
TEST_P(Bf16Test, ComputesWhatFp32DoesWithinItsBits) {
  const double expected = wide.forward(1), got = narrow.forward(1);
  EXPECT_NEAR(got, expected, 3e-3 * expected);
  EXPECT_NE(got, expected) << "it computes in bf16";
  wide.backward(1, kA);
  narrow.backward(1, kA);
  for (std::size_t k = 0; k < wide.size(); ++k)
    expect_near(narrow.read(k, ArenaRole::kAccumulatorA), wide.read(k, ArenaRole::kAccumulatorA), 0.03);
}

TEST_P(Bf16Test, LearnsAsFp32) {
  const double before = wide.forward(100);
  for (std::size_t k = 0; k < wide.size(); ++k) wide.at(k).drop(100);
  train(wide, 30);
  train(narrow, 30);
  const double expected = wide.forward(100);
  EXPECT_LT(expected, 0.5 * before);
  EXPECT_NEAR(narrow.forward(100), expected, 0.05 * before);
}

// Copies of older ones would show.
TEST_P(Bf16Test, ReadsTheParametersAsTheyAreNow) {
  Chain fresh(maker_of(ComputeType::kBf16), model, 2);
  fresh.forward(1);
  train(narrow, 5);
  for (std::size_t k = 0; k < fresh.size(); ++k)
    fresh.write(k, ArenaRole::kCurrent, narrow.read(k, ArenaRole::kCurrent));
  EXPECT_EQ(narrow.forward(9), fresh.forward(9));
}

TEST_P(Bf16Test, AnEvaluationReadsTheAnchorAsItIsNow) {
  const auto evaluated = [&](Chain& chain) {
    HostTensor x;
    double loss = 0;
    for (std::size_t k = 0; k < chain.size(); ++k) {
      HostCoder coder(x);
      const auto out = chain.at(k).evaluate({1, microbatch(1), contract_tokens(1)}, coder);
      EXPECT_TRUE(out.ok());
      loss = out.ok() ? out->loss_sum : 0;
      x = coder.output();
    }
    return loss;
  };
  const double before = evaluated(narrow);
  train(narrow, 5);
  EXPECT_EQ(evaluated(narrow), before);
  // As rounds do on a host: nobody tells the arena.
  for (std::size_t k = 0; k < narrow.size(); ++k)
    std::ranges::copy(narrow.read(k, ArenaRole::kCurrent), narrow.at(k).arena().span(ArenaRole::kAnchor).begin());
  EXPECT_EQ(evaluated(narrow), narrow.forward(1));
}

INSTANTIATE_TEST_SUITE_P(Families, Bf16Test,
                         testing::Values(std::pair(ModelFamily::kGpt2, AttentionExtras::kNone),
                                         std::pair(ModelFamily::kLlama, AttentionExtras::kQkvBias),
                                         std::pair(ModelFamily::kLlama, AttentionExtras::kQkNorm)));

// Also behind a step, at the weights of the forward.
TEST(RecomputeTest, AGraphThatIsMadeAgainGivesTheSameBits) {
  const ModelSpec model = four_layers(ModelFamily::kGpt2, AttentionExtras::kNone);
  Chain kept(maker_of(ComputeType::kFp32), model, 3), again(maker_of(ComputeType::kFp32, Recompute::kStage), model, 3);
  for (Chain* chain : {&kept, &again}) {
    chain->count(1, kA);
    chain->forward(2);
    for (std::size_t k = 0; k < chain->size(); ++k) {
      chain->at(k).settle(1);
      ASSERT_TRUE(chain->at(k).inner_step(kA, contract_step()).ok());
    }
    EXPECT_EQ(dynamic_cast<TorchExecutor&>(chain->at(0)).graph_count(), chain == &kept ? 1u : 0u);
    for (const Backwarded& out : chain->backward(2, kA)) EXPECT_FALSE(out.recomputed) << "its weights still stand";
  }
  for (std::size_t k = 0; k < kept.size(); ++k)
    EXPECT_EQ(kept.read(k, ArenaRole::kAccumulatorA), again.read(k, ArenaRole::kAccumulatorA));
}

}  // namespace
}  // namespace shoal
