// [compute]: bf16 beside fp32, the same model within bf16's bits; graphs that are made again, with the same bits.
#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include <new>
#include <optional>

#include "stages/adapters.h"
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
  for (std::size_t k = 0; k < narrow.size(); ++k)
    narrow.write(k, ArenaRole::kAnchor, narrow.read(k, ArenaRole::kCurrent));
  EXPECT_EQ(evaluated(narrow), narrow.forward(1));
}

// The base is copied too, once; and anew when it is given anew.
TEST_P(Bf16Test, AdaptersComputeAsInFp32WithinItsBits) {
  const auto adapted = [](ComputeType compute) {
    return ExecutorMaker{"", [=](const StageSpec& base) {
                           StageSpec spec = base;
                           spec.model.lora_rank = 2;
                           return maker_of(compute).make(spec);
                         }};
  };
  Chain exact(adapted(ComputeType::kFp32), model, 2), rough(adapted(ComputeType::kBf16), model, 2);
  const auto give_base = [&](std::uint64_t seed) {
    for (Chain* chain : {&exact, &rough}) {
      for (std::size_t k = 0; k < chain->size(); ++k) {
        StageSpec base = base_of(chain->at(k).spec());
        base.model.seed = seed;
        std::vector<float> values(parameter_count(base));
        initialise(base, values);
        chain->write(k, ArenaRole::kBase, values);
      }
    }
  };
  give_base(1);
  train(exact, 5);  // from the zeros of B, where A has no gradient
  const double first = rough.forward(1);
  for (std::size_t k = 0; k < exact.size(); ++k)
    rough.write(k, ArenaRole::kCurrent, exact.read(k, ArenaRole::kCurrent));
  EXPECT_NE(rough.forward(2), first);
  give_base(2);
  const double expected = exact.forward(3), got = rough.forward(3);
  EXPECT_NEAR(got, expected, 3e-3 * expected);
  EXPECT_NE(got, expected) << "it computes in bf16";
  exact.backward(3, kA);
  rough.backward(3, kA);
  for (std::size_t k = 0; k < exact.size(); ++k)
    expect_near(rough.read(k, ArenaRole::kAccumulatorA), exact.read(k, ArenaRole::kAccumulatorA), 0.03);
}

// Gives out memory until a tensor is asked for that finds none.
class EndingMemory final : public c10::Allocator {
 public:
  explicit EndingMemory(c10::Allocator* beneath) : beneath_(beneath) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    if (tensors_left && (*tensors_left)-- == 0) throw std::bad_alloc();
    return beneath_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return beneath_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { beneath_->copy_data(to, from, bytes); }
  std::optional<int> tensors_left;

 private:
  c10::Allocator* beneath_;
};

TEST_P(Bf16Test, MemoryThatEndsAnywhereInAPassRefusesThatPassAlone) {
  Chain steady(maker_of(ComputeType::kBf16), model, 1), short_of_it(maker_of(ComputeType::kBf16), model, 1);
  const double expected = steady.forward(1);
  static EndingMemory memory(c10::GetAllocator(c10::kCPU));  // an allocator lives as long as its tensors
  c10::SetAllocator(c10::kCPU, &memory, 1);
  int refused = 0;
  for (bool passed = false; !passed; ++refused) {
    memory.tensors_left = refused;
    const auto out = pass_forward(short_of_it.at(0), {1, microbatch(1), contract_tokens(1)}, {});
    memory.tensors_left.reset();
    passed = out.ok();
    EXPECT_EQ(passed ? out->loss_sum : expected, expected) << refused;
    if (!passed) {
      EXPECT_EQ(out.code(), ErrorCode::kTooLarge) << out.error().message;
    }
  }
  EXPECT_GT(refused, 20) << "it ended among the copies of the weights too";
}

INSTANTIATE_TEST_SUITE_P(Families, Bf16Test,
                         testing::Values(std::pair(ModelFamily::kGpt2, AttentionExtras::kNone),
                                         std::pair(ModelFamily::kLlama, AttentionExtras::kQkvBias),
                                         std::pair(ModelFamily::kLlama, AttentionExtras::kQkNorm)));

class RecomputeTest : public testing::TestWithParam<std::tuple<ModelFamily, ComputeType, Recompute>> {};

// Also behind a step, at the weights of the forward.
TEST_P(RecomputeTest, AGraphThatIsMadeAgainGivesTheSameBits) {
  const auto [family, compute, recompute] = GetParam();
  const ModelSpec model = four_layers(family, AttentionExtras::kNone);
  for (const std::size_t stages : {1, 3}) {
    Chain kept(maker_of(compute), model, stages), again(maker_of(compute, recompute), model, stages);
    for (Chain* chain : {&kept, &again}) {
      chain->count(1, kA);
      chain->forward(2);
      for (std::size_t k = 0; k < chain->size(); ++k) {
        chain->at(k).settle(1);
        ASSERT_TRUE(chain->at(k).inner_step(kA, contract_step()).ok());
      }
      const bool keeps = chain == &kept || recompute == Recompute::kBlock || stages == 1;
      EXPECT_EQ(dynamic_cast<TorchExecutor&>(chain->at(0)).graph_count(), keeps ? 1u : 0u);
      for (const Backwarded& out : chain->backward(2, kA)) EXPECT_FALSE(out.recomputed) << "its weights still stand";
    }
    for (std::size_t k = 0; k < kept.size(); ++k)
      EXPECT_EQ(kept.read(k, ArenaRole::kAccumulatorA), again.read(k, ArenaRole::kAccumulatorA));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecomputeTest,
                         testing::Combine(testing::Values(ModelFamily::kGpt2, ModelFamily::kLlama),
                                          testing::Values(ComputeType::kFp32, ComputeType::kBf16),
                                          testing::Values(Recompute::kStage, Recompute::kBlock)));

}  // namespace
}  // namespace shoal
