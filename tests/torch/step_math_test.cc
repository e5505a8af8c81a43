// The three ways of a step beside each other (stages/step_math.h).
#include "stages/step_math.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>

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

// The same three microbatches and steps on each of the chains; `step_of` is asked right before a chain's step,
// `compare` when all of them made it.
void three_steps(std::initializer_list<Chain*> chains,
                 const std::function<InnerStep(Chain& chain, std::uint64_t number)>& step_of,
                 const std::function<void(std::uint64_t number)>& compare) {
  for (std::uint64_t number = 1; number <= 3; ++number) {
    for (Chain* chain : chains) {
      chain->count(number, kA);
      chain->at(0).settle(number);
      ASSERT_TRUE(chain->at(0).inner_step(kA, step_of(*chain, number)).ok());
    }
    compare(number);
  }
}

// Everybody goes on from the first one's parameters, so that what is compared is one step and the moments.
void expect_same_step(Chain& first, Chain& near, double tolerance, Chain* other = nullptr) {
  const std::vector<float> own = first.read(0, ArenaRole::kCurrent);
  expect_near(near.read(0, ArenaRole::kCurrent), own, tolerance);
  near.write(0, ArenaRole::kCurrent, own);
  if (other == nullptr) return;
  EXPECT_NE(other->read(0, ArenaRole::kCurrent), own);
  other->write(0, ArenaRole::kCurrent, own);
}

TEST(StepMathTest, TensorMathLooksAheadAsTheHostDoes) {
  Chain host(torch_maker(kHost), contract_model(), 1), tensors(torch_maker(kTensors), contract_model(), 1),
      plain(torch_maker(kHost), contract_model(), 1);
  three_steps(
      {&host, &tensors, &plain},
      [&](Chain& chain, std::uint64_t number) {
        InnerStep step = looking_ahead(number);
        if (&chain == &plain) step.look_ahead = step.look_ahead_before = 0;
        return step;
      },
      [&](std::uint64_t) { expect_same_step(host, tensors, 1e-5, &plain); });
}

// The way of a GPU with the twins in the place of CUDA's kernels, which tests/kernels holds to them: three steps that
// look ahead, with a round's shift pending at the second.
TEST(StepMathTest, KernelsGiveTheBitsOfTheHost) {
  Chain host(torch_maker(kHost), contract_model(), 1), kernels(torch_maker(kKernels), contract_model(), 1);
  three_steps(
      {&host, &kernels},
      [](Chain& chain, std::uint64_t number) {
        if (number == 2) {
          std::vector<float> moved(chain.at(0).arena().size());
          for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = 1e-3f * static_cast<float>(i % 7);
          chain.write(0, ArenaRole::kCandidateShift, moved);
          chain.at(0).set_shift();
        }
        return looking_ahead(number);
      },
      [&](std::uint64_t number) {
        for (const ArenaRole role : {ArenaRole::kCurrent, ArenaRole::kMoment1, ArenaRole::kMoment2})
          EXPECT_EQ(kernels.read(0, role), host.read(0, role)) << "step " << number;
      });
}

TEST(StepMathTest, KernelsStepMatricesAsTensorsDo) {
  Chain tensors(torch_maker(kTensors), contract_model(), 1), kernels(torch_maker(kKernels), contract_model(), 1);
  three_steps(
      {&tensors, &kernels},
      [](Chain&, std::uint64_t number) {
        InnerStep step = looking_ahead(number);
        step.muon = true;
        return step;
      },
      [&](std::uint64_t) { expect_same_step(tensors, kernels, 1e-5); });
}

TEST(StepMathTest, TensorMathStepsMatricesAsTheHostDoes) {
  Chain host(torch_maker(kHost), contract_model(), 1), tensors(torch_maker(kTensors), contract_model(), 1),
      plain(torch_maker(kHost), contract_model(), 1);
  three_steps(
      {&host, &tensors, &plain},
      [&](Chain& chain, std::uint64_t number) {
        InnerStep step = looking_ahead(number);
        step.muon = &chain != &plain;
        return step;
      },
      [&](std::uint64_t) { expect_same_step(host, tensors, 1e-4, &plain); });
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
