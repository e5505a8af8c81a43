// The product's executor: the contract on both of its arithmetic paths, equality of splits, kept graphs, screening.
#include "stages/torch_executor.h"

#include <ATen/core/Tensor.h>

#include "stages/adapters.h"
#include "tests/stages/boundary_model.h"
#include "tests/stages/executor_contract.h"
#include "tests/stages/text_contract.h"
#include "tests/torch/torch_maker.h"

namespace shoal {
namespace {

// The same model as torch_maker's, as the base of adapters.
ExecutorMaker adapters_maker(ComputeType compute = ComputeType::kFp32, Recompute recompute = Recompute::kNone) {
  return {std::string(compute == ComputeType::kBf16 ? "bf16_adapters" : "adapters") +
              (recompute == Recompute::kBlock ? "_by_block" : ""),
          [=](const StageSpec& base) {
            StageSpec spec = base;
            spec.model.lora_rank = 2;
            auto executor = *make_torch_executor(spec, {.device = "cpu", .compute = compute, .recompute = recompute});
            initialise(base, executor->arena().span(ArenaRole::kBase));
            executor->arena().push(ArenaRole::kBase);
            return executor;
          },
          2e-6};
}
ExecutorMaker recompute_maker(Recompute recompute, ComputeType compute = ComputeType::kFp32) {
  return {(compute == ComputeType::kBf16 ? "bf16_recompute_" : "recompute_") +
              std::string(kRecomputeNames[static_cast<std::size_t>(recompute)]),
          [=](const StageSpec& spec) -> std::unique_ptr<StageExecutor> {
            return std::move(*make_torch_executor(spec, {.device = "cpu", .compute = compute, .recompute = recompute}));
          },
          2e-6, recompute != Recompute::kStage};
}
constexpr ComputeType kNarrow = ComputeType::kBf16;
INSTANTIATE_TEST_SUITE_P(Torch, ExecutorContract,
                         ::testing::Values(torch_maker(kHost), torch_maker(kTensors), torch_maker(kKernels),
                                           adapters_maker(), adapters_maker(ComputeType::kFp32, Recompute::kBlock),
                                           torch_maker(kHost, 1, kNarrow), torch_maker(kTensors, 1, kNarrow),
                                           adapters_maker(kNarrow), recompute_maker(Recompute::kStage),
                                           recompute_maker(Recompute::kBlock), with_boundary(torch_maker(kHost)),
                                           with_boundary(recompute_maker(Recompute::kBlock, kNarrow))),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Torch, TextContract,
                         ::testing::Values(torch_maker(kHost), torch_maker(kTensors), adapters_maker(),
                                           with_boundary(torch_maker(kHost))),
                         [](const auto& info) { return info.param.name; });

TorchExecutor& executor_of(Chain& chain, std::size_t stage) { return dynamic_cast<TorchExecutor&>(chain.at(stage)); }

// Embedding and head have nothing that is trained.
TEST(TorchExecutorTest, AdaptersLayerByLayerGiveTheSameBits) {
  for (const std::size_t stages : {1, 2, 4}) {
    Chain kept(adapters_maker(), four_layer_model(), stages),
        again(adapters_maker(ComputeType::kFp32, Recompute::kBlock), four_layer_model(), stages);
    for (Chain* chain : {&kept, &again}) chain->count(1, kA);
    for (std::size_t k = 0; k < stages; ++k)
      EXPECT_EQ(kept.read(k, ArenaRole::kAccumulatorA), again.read(k, ArenaRole::kAccumulatorA));
  }
}

// Adapters train beside a base that nothing writes, and compute what the base does into which they are merged.
TEST(TorchExecutorTest, AdaptersAreTheModelIntoWhichTheyAreMerged) {
  Chain adapted(adapters_maker(), contract_model(), 3), whole(torch_maker(kHost), contract_model(), 3);
  EXPECT_NEAR(adapted.forward(1), whole.forward(1), 1e-6 * whole.forward(2)) << "they begin as the base";
  const std::vector<float> base = adapted.read(1, ArenaRole::kBase);
  for (std::uint64_t serial = 3; serial < 9; ++serial) {
    adapted.forward(serial);
    adapted.backward(serial, kA);
    for (std::size_t k = 0; k < adapted.size(); ++k) {
      adapted.at(k).settle(serial);
      ASSERT_TRUE(adapted.at(k).inner_step(kA, contract_step()).ok());
    }
  }
  EXPECT_EQ(adapted.read(1, ArenaRole::kBase), base);
  const double before = whole.forward(21);
  for (std::size_t k = 0; k < adapted.size(); ++k) {
    std::vector<float> merged = adapted.read(k, ArenaRole::kBase);
    merge_adapters(adapted.at(k).spec(), adapted.read(k, ArenaRole::kCurrent), merged);
    std::ranges::copy(merged, whole.at(k).arena().span(ArenaRole::kCurrent).begin());
  }
  const double expected = adapted.forward(21);
  EXPECT_NEAR(whole.forward(22), adapted.forward(22), 1e-5 * expected);
  EXPECT_GT(std::abs(before - expected), 1e-3 * expected) << "they learnt";
}

TEST(TorchExecutorTest, FourStagesEqualOneUnsplitGraph) {
  Chain whole(torch_maker(kHost), four_layer_model(), 1), split(torch_maker(kHost), four_layer_model(), 4);
  for (const std::uint64_t serial : {1, 2, 3}) {
    const double expected = whole.forward(serial), got = split.forward(serial);
    EXPECT_NEAR(got, expected, 1e-6 * expected);
    EXPECT_NEAR(expected / 16, std::log(23.0), 0.2) << "near the uniform guess at the start";
    whole.backward(serial, kA);
    split.backward(serial, kA);
  }
  const auto joined = [&](ArenaRole role) {
    std::vector<float> all;
    for (std::size_t k = 0; k < split.size(); ++k) {
      const std::vector<float> part = split.read(k, role);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const std::vector<ParameterSpec> parameters = parameters_of(whole.at(0).spec());
  expect_tensors_near(parameters, joined(ArenaRole::kAccumulatorA), whole.read(0, ArenaRole::kAccumulatorA), 1e-5);
  InnerStep step = contract_step();
  step.clip_norm = 0;  // clipping is per stage by design
  step.targets = 48;
  ASSERT_TRUE(whole.at(0).inner_step(kA, step).ok());
  for (std::size_t k = 0; k < split.size(); ++k) ASSERT_TRUE(split.at(k).inner_step(kA, step).ok());
  expect_tensors_near(parameters, joined(ArenaRole::kCurrent), whole.read(0, ArenaRole::kCurrent), 1e-4);
  EXPECT_NEAR(split.forward(9), whole.forward(9), 1e-5 * whole.forward(10));
}

TEST(TorchExecutorTest, TrainingOnOneTextLowersItsLoss) {
  Chain chain(torch_maker(kHost), four_layer_model(), 2);
  EXPECT_LT(chain.train(30), 0.5);
}

TEST(TorchExecutorTest, WiderTokensMeanTheSame) {
  Chain chain(torch_maker(kHost), contract_model(), 1);
  const HostTensor narrow = contract_tokens(1);
  const auto loss = [&](std::uint64_t serial, DType width) {
    const std::size_t bytes = size_of(width);
    Buffer buffer(bytes * narrow.bytes.size());  // zeros
    for (std::size_t i = 0; i < narrow.bytes.size(); ++i) buffer.data()[bytes * i] = narrow.bytes.data()[i];
    const HostTensor tokens = make_host_tensor(width, narrow.shape, std::move(buffer));
    return pass_forward(chain.at(0), {serial, microbatch(serial), tokens})->loss_sum;
  };
  EXPECT_EQ(loss(1, DType::kU8), loss(2, DType::kU16));
  EXPECT_EQ(loss(3, DType::kU8), loss(4, DType::kU32));
}

// A graph made before a write gives the gradient of its own weights, as an executor that never stepped does.
TEST(TorchExecutorTest, AKeptGraphGivesTheGradientOfItsOwnWeights) {
  Chain chain(torch_maker(kHost), contract_model(), 3), still(torch_maker(kHost), contract_model(), 3);
  chain.forward(1);
  chain.count(2, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    chain.at(k).settle(2);
    ASSERT_TRUE(chain.at(k).inner_step(kA, contract_step()).ok());
  }
  for (const Backwarded& out : chain.backward(1, kB)) EXPECT_EQ(out.stamp, 0u);
  still.count(1, kB);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorB), still.read(k, ArenaRole::kAccumulatorB));
  }
}

// After its buffer was overwritten, the graph is made anew: the gradient is that of the newest weights, not of a
// mixture.
TEST(TorchExecutorTest, ADroppedGraphIsRecomputedAtTheNewestWeights) {
  Chain chain(torch_maker(kHost), contract_model(), 3), fresh(torch_maker(kHost), contract_model(), 3);
  chain.forward(1);
  for (const std::uint64_t serial : {2, 3}) {
    chain.count(serial, kA);
    for (std::size_t k = 0; k < chain.size(); ++k) {
      chain.at(k).settle(serial);
      ASSERT_TRUE(chain.at(k).inner_step(kA, contract_step()).ok());
    }
  }
  // Each stage alone, with the inputs of the first forward: recomputation reads the input that was kept.
  for (std::size_t k = 0; k < chain.size(); ++k) {
    fresh.write(k, ArenaRole::kCurrent, chain.read(k, ArenaRole::kCurrent));
  }
  chain.forward(4);
  chain.backward(4, kB);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const HostTensor gradient = chain.gradients[k];
    chain.at(k).settle(4);
    chain.at(k).clear_window(kB);
    Chain original(torch_maker(kHost), contract_model(), 3);
    original.forward(1);
    const Result<Backwarded> out = pass_backward(chain.at(k), 1, gradient, kB);
    ASSERT_TRUE(out.ok());
    EXPECT_TRUE(out->recomputed);
    ASSERT_TRUE(pass_forward(fresh.at(k), {1, microbatch(1), contract_tokens(1)}, original.activations[k]).ok());
    ASSERT_TRUE(pass_backward(fresh.at(k), 1, gradient, kB).ok());
    EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorB), fresh.read(k, ArenaRole::kAccumulatorB)) << "stage " << k;
  }
}

// Raw writes into the arena are invisible to autograd, so what protects a graph is that none is left when its buffer is
// written.
TEST(TorchExecutorTest, NoGraphOutlivesTheBufferItReads) {
  Chain chain(torch_maker(kHost), contract_model(), 3);
  const auto references = [&](ArenaRole role) {
    std::vector<std::uint64_t> counts;
    for (std::size_t k = 0; k < chain.size(); ++k) counts.push_back(executor_of(chain, k).outside_references(role));
    return counts;
  };
  const std::vector<std::uint64_t> none(3, 0);
  EXPECT_EQ(references(ArenaRole::kCurrent), none);
  chain.forward(1);
  for (const std::uint64_t count : references(ArenaRole::kCurrent))
    EXPECT_GT(count, 0u) << "a kept graph reads the buffer";
  chain.forward(2);
  chain.backward(2, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    chain.at(k).settle(2);
    EXPECT_EQ(executor_of(chain, k).graph_count(), 1u);
    ASSERT_TRUE(chain.at(k).inner_step(kA, contract_step()).ok());
  }
  for (const std::uint64_t count : references(ArenaRole::kOther))
    EXPECT_GT(count, 0u) << "entry 1 still reads the buffer before";
  EXPECT_EQ(references(ArenaRole::kCurrent), none);
  for (std::size_t k = 0; k < chain.size(); ++k) EXPECT_EQ(chain.at(k).begin_write(), 1u);
  EXPECT_EQ(references(ArenaRole::kOther), none) << "nothing reads what is overwritten now";
  for (std::size_t k = 0; k < chain.size(); ++k) chain.at(k).flip();
  chain.backward(1, kA);
  EXPECT_EQ(references(ArenaRole::kCurrent), none) << "backward frees its graph";
}

TEST(TorchExecutorTest, UndoEvaluateAndRefusalsLeaveNoGraphBehind) {
  Chain chain(torch_maker(kHost), contract_model(), 3);
  chain.count(1, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    ASSERT_TRUE(chain.at(k).undo(1).ok());
    ASSERT_TRUE(pass_evaluate(chain.at(k), {1, microbatch(1), contract_tokens(1)}, chain.activations[k]).ok());
  }
  chain.forward(2);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    chain.at(k).drop(2);
    EXPECT_EQ(executor_of(chain, k).outside_references(ArenaRole::kCurrent), 0u);
    EXPECT_EQ(executor_of(chain, k).outside_references(ArenaRole::kAnchor), 0u);
    EXPECT_EQ(executor_of(chain, k).entry_count(), 0u);
  }
}

using TorchExecutorDeathTest = ::testing::Test;
TEST(TorchExecutorDeathTest, AWriteIntoABufferThatSomethingStillReadsStopsTheProgram) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  Chain chain(torch_maker(kHost), contract_model(), 1);
  ASSERT_TRUE(chain.at(0).inner_step(kA, contract_step()).ok());
  (void)arena_of(chain, 0).leaves(ArenaRole::kOther);
  ASSERT_TRUE(chain.at(0).inner_step(kA, contract_step()).ok());
  const at::Tensor leaked = arena_of(chain, 0).leaves(ArenaRole::kOther)[3];
  EXPECT_DEATH((void)chain.at(0).inner_step(kA, contract_step()), "outside_references");
}

TEST(TorchExecutorTest, OverflowInForwardIsRefusedAndNamed) {
  Chain chain(torch_maker(kHost), contract_model(), 3);
  chain.forward(1);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    std::vector<float> weights = chain.read(k, ArenaRole::kCurrent);
    for (float& weight : weights) weight *= 1e25f;
    chain.write(k, ArenaRole::kCurrent, weights);
    const Result<Forwarded> out =
        pass_forward(chain.at(k), {2, microbatch(2), contract_tokens(2)}, chain.activations[k]);
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.code(), ErrorCode::kNonFinite);
    EXPECT_NE(out.error().message.find(k == 2 ? "loss" : "output activation"), std::string::npos)
        << out.error().message;
    EXPECT_NE(out.error().message.find("microbatch"), std::string::npos);
    EXPECT_EQ(executor_of(chain, k).entry_count(), 1u) << "nothing was kept";
  }
}

TEST(TorchExecutorTest, OverflowInBackwardAddsNothing) {
  for (const StepPath path : {kHost, kTensors, kKernels}) {
    Chain chain(torch_maker(path), contract_model(), 3);
    chain.count(1, kA);
    chain.forward(2);
    for (std::size_t k = 0; k < 2; ++k) {
      HostTensor huge = chain.gradients[k];
      Buffer buffer(huge.bytes.size());
      for (float& value : buffer.as<float>()) value = 3e38f;
      huge = make_host_tensor(DType::kF32, huge.shape, std::move(buffer));
      const std::vector<float> before = chain.read(k, ArenaRole::kAccumulatorA);
      const Result<Backwarded> out = pass_backward(chain.at(k), 2, huge, kA);
      ASSERT_FALSE(out.ok());
      EXPECT_EQ(out.code(), ErrorCode::kNonFinite);
      EXPECT_NE(out.error().message.find("gradient"), std::string::npos) << out.error().message;
      EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorA), before);
      EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorA), count_tag(microbatch(1)));
      const Result<Backwarded> again = pass_backward(chain.at(k), 2, chain.gradients[k], kA);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_TRUE(again->recomputed) << "the refused backward used the graph up";
    }
  }
}

}  // namespace
}  // namespace shoal
