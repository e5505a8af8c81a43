#pragma once
// The half of the executors' contract that writes parameters: inner steps, shifts, writes of a rule, and what they do
// to graphs. Included by executor_contract.h only.
#include "tests/stages/contract_fixture.h"

namespace shoal {

TEST_P(ExecutorContract, UndoAfterAWriteUsesTheWeightsThatMadeTheGradient) {
  chain.count(1, kB);
  chain.count(2, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) chain.at(k).settle(2);
  const std::vector<float> counted = chain.read(1, ArenaRole::kAccumulatorB);
  step(kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    EXPECT_TRUE(*chain.at(k).undo(1));
    const std::vector<float> left = chain.read(k, ArenaRole::kAccumulatorB);
    EXPECT_EQ(left, std::vector<float>(left.size(), 0.0f)) << "the same gradient, bit by bit";
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorB), 0u);
  }
  EXPECT_NE(counted, std::vector<float>(counted.size(), 0.0f));
}

TEST_P(ExecutorContract, AReplayMakesWhatThePassMadeAtTheWeightsOfItsStampAndKeepsNothing) {
  chain.forward(1);
  const std::vector<HostTensor> went_in = chain.activations;
  const std::vector<Backwarded> made = chain.backward(1, kB);
  const std::vector<HostTensor> came_back = chain.gradients;
  chain.count(2, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) chain.at(k).settle(2);
  step(kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const StageInput input{microbatch(1), contract_tokens(1), went_in[k]};
    const std::vector<float> counted = chain.read(k, ArenaRole::kAccumulatorB);
    const Backwarded& backward = made[chain.size() - 1 - k];
    const Result<ReplayedPass> again = chain.at(k).replay(input, came_back[k], backward.stamp);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(again->exact);
    EXPECT_EQ(again->output.stamp, backward.stamp);
    const auto same = [](const HostTensor& a, const HostTensor& b) {
      return a.defined() == b.defined() && (!a.defined() || std::ranges::equal(a.f32(), b.f32()));
    };
    EXPECT_TRUE(k + 1 == chain.size() || same(again->activation.on_host(), went_in[k + 1]));
    EXPECT_TRUE(same(again->input_gradient.on_host(), backward.gradient));
    EXPECT_FALSE(chain.at(k).replay(input, came_back[k], chain.at(k).stamp() + 7)->exact) << "of weights never here";
    EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorB), counted);
  }
}

TEST_P(ExecutorContract, AGradientIsThatOfTheWeightsItIsMadeAt) {
  chain.count(1, kA);
  std::vector<std::vector<float>> before;
  for (std::size_t k = 0; k < chain.size(); ++k) {
    before.push_back(chain.read(k, ArenaRole::kAccumulatorA));
    chain.at(k).settle(1);
  }
  step(kA);
  chain.count(1, kB);
  for (std::size_t k = 0; k < chain.size(); ++k)
    EXPECT_NE(chain.read(k, ArenaRole::kAccumulatorB), before[k]) << "stage " << k;
}

TEST_P(ExecutorContract, UndoSaysWhenItsWeightsAreGone) {
  chain.count(1, kB);
  chain.count(2, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) chain.at(k).settle(2);
  step(kA);
  EXPECT_EQ(chain.at(0).unsettled_at_other(), 1u);
  step(kA);  // too early: entry 1 was not settled
  for (std::size_t k = 0; k < chain.size(); ++k) {
    EXPECT_FALSE(*chain.at(k).undo(1));
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorB), 0u);
  }
}

TEST_P(ExecutorContract, AnInnerStepMovesTheTagToTheParametersAndEmptiesTheWindow) {
  chain.count(1, kA);
  chain.count(2, kA);
  chain.count(3, kB);
  const std::vector<float> before = chain.read(0, ArenaRole::kCurrent);
  for (const InnerStepResult& result : step(kA)) {
    EXPECT_EQ(result.stamp, 1u);
    EXPECT_GT(result.gradient_norm, 0);
  }
  for (std::size_t k = 0; k < chain.size(); ++k) {
    EXPECT_EQ(chain.at(k).stamp(), 1u);
    EXPECT_EQ(chain.tag(k, ArenaRole::kCurrent), count_tag(microbatch(1)) + count_tag(microbatch(2)));
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorA), 0u);
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorB), count_tag(microbatch(3)));
    const std::vector<float> window = chain.read(k, ArenaRole::kAccumulatorA);
    EXPECT_EQ(window, std::vector<float>(window.size(), 0.0f));
  }
  EXPECT_NE(chain.read(0, ArenaRole::kCurrent), before);
  EXPECT_EQ(chain.read(0, ArenaRole::kOther), before) << "the stamp before stays readable";
}

TEST_P(ExecutorContract, AGraphSurvivesOneWriteAndIsDroppedBeforeItsBufferIsOverwritten) {
  chain.forward(1);
  for (const InnerStepResult& result : step(kA)) EXPECT_EQ(result.graphs_dropped, 0u);
  chain.forward(2);
  const std::vector<InnerStepResult> results = step(kA);
  for (std::size_t k = 0; k < chain.size(); ++k) EXPECT_EQ(results[k].graphs_dropped, kept_graphs(k));
  for (const Backwarded& out : chain.backward(1, kA)) {
    EXPECT_TRUE(out.recomputed);
    EXPECT_EQ(out.stamp, 2u);
  }
  for (const Backwarded& out : chain.backward(2, kA)) {
    EXPECT_FALSE(out.recomputed);
    EXPECT_EQ(out.stamp, 1u);
  }
}

TEST_P(ExecutorContract, CountedEntriesOfTheBufferBeforeHoldTheNextWriteUp) {
  chain.count(1, kA);
  chain.count(2, kA);
  chain.forward(3);
  EXPECT_EQ(chain.at(0).unsettled_at_other(), 0u);
  for (std::size_t k = 0; k < chain.size(); ++k) chain.at(k).settle(2);
  step(kB);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    EXPECT_EQ(chain.at(k).unsettled_at_other(), 1u);
    chain.at(k).settle(1);
    EXPECT_EQ(chain.at(k).unsettled_at_other(), 0u) << "a forward that waits for its gradient holds nothing up";
  }
}

TEST_P(ExecutorContract, AShiftIsAddedWithTheNextInnerStep) {
  Chain plain = another();
  for (Chain* each : {&chain, &plain}) each->count(1, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    Arena& arena = chain.at(k).arena();
    chain.write(k, ArenaRole::kCandidateShift, std::vector<float>(arena.size(), 2.0f));
    arena.tag(ArenaRole::kCandidateShift) = 7;
    EXPECT_FALSE(chain.at(k).shift_pending());
    chain.at(k).set_shift();
    EXPECT_EQ(arena.tag(ArenaRole::kCandidateShift), 0u) << "it is there for the next round";
    EXPECT_TRUE(chain.at(k).shift_pending());
    ASSERT_TRUE(chain.at(k).inner_step(kA, contract_step()).ok());
    ASSERT_TRUE(plain.at(k).inner_step(kA, contract_step()).ok());
    EXPECT_FALSE(chain.at(k).shift_pending());
    std::vector<float> expected = plain.read(k, ArenaRole::kCurrent);
    for (float& value : expected) value += 2.0f;
    expect_near(chain.read(k, ArenaRole::kCurrent), expected, tolerance());
    EXPECT_EQ(chain.tag(k, ArenaRole::kCurrent), plain.tag(k, ArenaRole::kCurrent) + 7);
  }
}

TEST_P(ExecutorContract, ShiftsAddUpAndCanBeAppliedAlone) {
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const std::vector<float> start = chain.read(k, ArenaRole::kCurrent);
    for (int i = 0; i < 2; ++i) {
      chain.write(k, ArenaRole::kCandidateShift, std::vector<float>(start.size(), 1.0f));
      chain.at(k).arena().tag(ArenaRole::kCandidateShift) = 3;
      chain.at(k).set_shift();
    }
    const InnerStepResult result = chain.at(k).apply_shift();
    EXPECT_EQ(result.stamp, 1u);
    std::vector<float> expected = start;
    for (float& value : expected) value += 2.0f;
    expect_near(chain.read(k, ArenaRole::kCurrent), expected, tolerance());
    EXPECT_EQ(chain.read(k, ArenaRole::kOther), start);
    EXPECT_EQ(chain.tag(k, ArenaRole::kCurrent), 6u);
    EXPECT_FALSE(chain.at(k).shift_pending());
  }
}

TEST_P(ExecutorContract, ARuleMayWriteTheOtherBufferItself) {
  chain.forward(1);
  step(kA);
  chain.forward(2);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const std::vector<float> own = chain.read(k, ArenaRole::kAnchor);
    EXPECT_EQ(chain.at(k).begin_write(), kept_graphs(k));
    chain.write(k, ArenaRole::kOther, own);
    chain.at(k).arena().tag(ArenaRole::kOther) = 9;
    EXPECT_EQ(chain.at(k).flip().stamp, 2u);
    EXPECT_EQ(chain.read(k, ArenaRole::kCurrent), own);
    EXPECT_EQ(chain.tag(k, ArenaRole::kCurrent), 9u);
  }
  for (const Backwarded& out : chain.backward(2, kA)) EXPECT_FALSE(out.recomputed);
  for (const Backwarded& out : chain.backward(1, kA)) EXPECT_TRUE(out.recomputed);
}

TEST_P(ExecutorContract, AnAbandonedWriteChangesNothing) {
  chain.forward(1);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const std::vector<float> current = chain.read(k, ArenaRole::kCurrent);
    EXPECT_EQ(chain.at(k).begin_write(), 0u);
    chain.write(k, ArenaRole::kOther, std::vector<float>(current.size(), std::numeric_limits<float>::quiet_NaN()));
    EXPECT_EQ(chain.at(k).stamp(), 0u);
    EXPECT_EQ(chain.read(k, ArenaRole::kCurrent), current);
  }
  for (const Backwarded& out : chain.backward(1, kA)) EXPECT_FALSE(out.recomputed);
  for (const InnerStepResult& result : step(kA)) EXPECT_EQ(result.stamp, 1u);
}

TEST_P(ExecutorContract, ANonFiniteWindowIsEmptiedAndTheParametersStay) {
  chain.count(1, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    std::vector<float> sums = chain.read(k, ArenaRole::kAccumulatorA);
    sums[0] = std::numeric_limits<float>::infinity();
    chain.write(k, ArenaRole::kAccumulatorA, sums);
    const std::vector<float> before = chain.read(k, ArenaRole::kCurrent);
    EXPECT_EQ(chain.at(k).inner_step(kA, contract_step()).code(), ErrorCode::kNonFinite);
    EXPECT_EQ(chain.read(k, ArenaRole::kCurrent), before);
    EXPECT_EQ(chain.at(k).stamp(), 0u);
    EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorA), std::vector<float>(sums.size(), 0.0f));
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorA), 0u);
    EXPECT_EQ(chain.tag(k, ArenaRole::kCurrent), 0u);
  }
}

TEST_P(ExecutorContract, EvaluationReadsTheAnchorAndKeepsNothing) {
  const double first = chain.forward(1);
  chain.count(2, kA);
  const std::vector<float> counted = chain.read(0, ArenaRole::kAccumulatorA);
  step(kA);
  HostTensor x;
  double loss = 0;
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const Result<Forwarded> out = pass_evaluate(chain.at(k), {1, microbatch(1), contract_tokens(1)}, x);
    ASSERT_TRUE(out.ok()) << out.error().message;
    x = out->activation;
    loss = out->loss_sum;
  }
  EXPECT_EQ(loss, first) << "the anchor still holds the first parameters";
  for (const Backwarded& out : chain.backward(1, kB))
    EXPECT_FALSE(out.recomputed) << "entry 1 is the forward's, not the evaluation's";
}

}  // namespace shoal
