// The three ways of a step beside each other (stages/step_math.h).
#include "stages/step_math.h"

#include <ATen/core/Tensor.h>

#include "tests/torch/torch_maker.h"

namespace shoal {
namespace {

TEST(StepMathTest, TwoThreadsAndTensorMathAgreeWithOneThread) {
  Chain one(torch_maker(kHost), four_layer_model(), 1), two(torch_maker(kHost, 2), four_layer_model(), 1),
      tensors(torch_maker(kTensors), four_layer_model(), 1);
  for (Chain* chain : {&one, &two, &tensors}) {
    chain->count(1, kA);
    ASSERT_TRUE(chain->at(0).inner_step(kA, contract_step()).ok());
  }
  const std::vector<ParameterSpec> parameters = parameters_of(one.at(0).spec());
  for (const ArenaRole role : {ArenaRole::kCurrent, ArenaRole::kMoment1, ArenaRole::kMoment2}) {
    expect_tensors_near(parameters, two.read(0, role), one.read(0, role), 1e-4);
    expect_tensors_near(parameters, tensors.read(0, role), one.read(0, role), 1e-4);
  }
}

InnerStep looking_ahead(std::uint64_t number) {
  InnerStep step = contract_step();
  step.step = number;
  step.look_ahead = 1;
  step.look_ahead_before = number > 1 ? 1 : 0;
  return step;
}

TEST(StepMathTest, TensorMathLooksAheadAsTheHostDoes) {
  Chain host(torch_maker(kHost), contract_model(), 1), tensors(torch_maker(kTensors), contract_model(), 1),
      plain(torch_maker(kHost), contract_model(), 1);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    for (Chain* chain : {&host, &tensors, &plain}) {
      chain->count(number, kA);
      chain->at(0).settle(number);
      InnerStep step = looking_ahead(number);
      if (chain == &plain) step.look_ahead = step.look_ahead_before = 0;
      ASSERT_TRUE(chain->at(0).inner_step(kA, step).ok());
    }
    // Everybody goes on from the host's parameters: what is compared is one step and the moments.
    const std::vector<float> own = host.read(0, ArenaRole::kCurrent);
    expect_near(tensors.read(0, ArenaRole::kCurrent), own, 1e-5);
    EXPECT_NE(plain.read(0, ArenaRole::kCurrent), own);
    for (Chain* chain : {&tensors, &plain}) chain->write(0, ArenaRole::kCurrent, own);
  }
}

// The way of a GPU with the twins in the place of CUDA's kernels, which tests/kernels holds to them: three steps that
// look ahead, with a round's shift pending at the second.
TEST(StepMathTest, KernelsGiveTheBitsOfTheHost) {
  Chain host(torch_maker(kHost), contract_model(), 1), kernels(torch_maker(kKernels), contract_model(), 1);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    for (Chain* chain : {&host, &kernels}) {
      chain->count(number, kA);
      chain->at(0).settle(number);
      if (number == 2) {
        std::vector<float> moved = chain->read(0, ArenaRole::kCurrent);
        chain->write(0, ArenaRole::kSnapshot, moved);
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += 1e-3f * static_cast<float>(i % 7);
        chain->write(0, ArenaRole::kCandidate, moved);
        chain->at(0).set_shift();
      }
      ASSERT_TRUE(chain->at(0).inner_step(kA, looking_ahead(number)).ok());
    }
    for (const ArenaRole role : {ArenaRole::kCurrent, ArenaRole::kMoment1, ArenaRole::kMoment2})
      EXPECT_EQ(kernels.read(0, role), host.read(0, role)) << "step " << number;
  }
}

TEST(StepMathTest, KernelsStepMatricesAsTensorsDo) {
  Chain tensors(torch_maker(kTensors), contract_model(), 1), kernels(torch_maker(kKernels), contract_model(), 1);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    for (Chain* chain : {&tensors, &kernels}) {
      chain->count(number, kA);
      chain->at(0).settle(number);
      InnerStep step = looking_ahead(number);
      step.muon = true;
      ASSERT_TRUE(chain->at(0).inner_step(kA, step).ok());
    }
    const std::vector<float> own = tensors.read(0, ArenaRole::kCurrent);
    expect_near(kernels.read(0, ArenaRole::kCurrent), own, 1e-5);
    kernels.write(0, ArenaRole::kCurrent, own);
  }
}

TEST(StepMathTest, TensorMathStepsMatricesAsTheHostDoes) {
  Chain host(torch_maker(kHost), contract_model(), 1), tensors(torch_maker(kTensors), contract_model(), 1),
      plain(torch_maker(kHost), contract_model(), 1);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    for (Chain* chain : {&host, &tensors, &plain}) {
      chain->count(number, kA);
      chain->at(0).settle(number);
      InnerStep step = looking_ahead(number);
      step.muon = chain != &plain;
      ASSERT_TRUE(chain->at(0).inner_step(kA, step).ok());
    }
    const std::vector<float> own = host.read(0, ArenaRole::kCurrent);
    expect_near(tensors.read(0, ArenaRole::kCurrent), own, 1e-4);
    EXPECT_NE(plain.read(0, ArenaRole::kCurrent), own);
    for (Chain* chain : {&tensors, &plain}) chain->write(0, ArenaRole::kCurrent, own);
  }
}

// The tensor operations of a plain step, in the order that they had before a step could look ahead.
TEST(StepMathTest, TensorMathWithoutLookAheadKeepsEveryBit) {
  Chain chain(torch_maker(kTensors), contract_model(), 1);
  InnerStep step = contract_step();
  step.clip_norm = 0;
  for (step.step = 1; step.step <= 3; ++step.step) {
    chain.count(step.step, kA);
    chain.at(0).settle(step.step);
    TorchArena& arena = arena_of(chain, 0);
    const AdamWFactors f = adamw_factors(step, 1);
    const at::Tensor gradient = arena.flat(ArenaRole::kAccumulatorA).mul(f.gradient_scale);
    at::Tensor moment1 = arena.flat(ArenaRole::kMoment1).clone(), moment2 = arena.flat(ArenaRole::kMoment2).clone();
    at::Tensor other = arena.flat(ArenaRole::kCurrent).clone();
    moment1.mul_(f.beta1).add_(gradient, 1 - f.beta1);
    moment2.mul_(f.beta2).addcmul_(gradient, gradient, 1 - f.beta2);
    for (const ParameterSpec& parameter : parameters_of(chain.at(0).spec())) {
      if (!parameter.decays) continue;
      other.narrow(0, static_cast<std::int64_t>(parameter.offset), element_count(parameter.shape)).mul_(f.keep);
    }
    other.addcdiv_(moment1, moment2.sqrt().mul_(f.root_scale).add_(f.eps), -f.rate);
    ASSERT_TRUE(chain.at(0).inner_step(kA, step).ok());
    EXPECT_TRUE(arena.flat(ArenaRole::kCurrent).equal(other)) << "step " << step.step;
    EXPECT_TRUE(arena.flat(ArenaRole::kMoment1).equal(moment1)) << "step " << step.step;
    EXPECT_TRUE(arena.flat(ArenaRole::kMoment2).equal(moment2)) << "step " << step.step;
  }
}

}  // namespace
}  // namespace shoal
