#pragma once
// What every StageExecutor must do, run on each implementation: INSTANTIATE_TEST_SUITE_P(..., ExecutorContract, Values(ExecutorMaker{...})).
// Runs a chain of three stages, so that first, middle and last are covered; every check is made at each stage.
// Defines tests: at most one file of a program includes it.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/stages/chain.h"

namespace shoal {

class ExecutorContract : public ::testing::TestWithParam<ExecutorMaker> {
 protected:
  ExecutorContract() : chain(GetParam(), contract_model(), 3) {}
  Chain another() { return Chain(GetParam(), contract_model(), 3); }
  // An inner step of every stage; expects success.
  std::vector<InnerStepResult> step(WindowSlot window) {
    std::vector<InnerStepResult> results;
    for (std::size_t k = 0; k < chain.size(); ++k) {
      const Result<InnerStepResult> result = chain.at(k).inner_step(window, contract_step());
      EXPECT_TRUE(result.ok());
      if (result.ok()) results.push_back(*result);
    }
    return results;
  }
  double tolerance() const { return GetParam().tolerance; }
  Chain chain;
};

TEST_P(ExecutorContract, CountsAGradientAndItsTagInTheNamedWindow) {
  chain.count(1, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorA), count_tag(microbatch(1)));
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorB), 0u);
    const std::vector<float> a = chain.read(k, ArenaRole::kAccumulatorA), b = chain.read(k, ArenaRole::kAccumulatorB);
    EXPECT_NE(a, std::vector<float>(a.size(), 0.0f));
    EXPECT_EQ(b, std::vector<float>(b.size(), 0.0f));
  }
}

TEST_P(ExecutorContract, TheSameMicrobatchGivesTheSameNumbersElsewhere) {
  Chain replica = another();
  EXPECT_EQ(chain.forward(1), replica.forward(1));
  chain.backward(1, kA);
  replica.backward(1, kB);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    expect_near(chain.read(k, ArenaRole::kAccumulatorA), replica.read(k, ArenaRole::kAccumulatorB), tolerance());
  }
}

TEST_P(ExecutorContract, RefusesMalformedForwardsAndKeepsNothing) {
  chain.forward(1);
  const HostTensor tokens = contract_tokens(2);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    StageExecutor& stage = chain.at(k);
    const HostTensor x = chain.activations[k];
    const auto code = [&](HostTensor given_tokens, HostTensor activation) {
      const Result<ForwardOutput> out = stage.forward({9, microbatch(9), std::move(given_tokens), std::move(activation)});
      EXPECT_FALSE(out.ok());
      return out.ok() ? ErrorCode::kTimeout : out.code();
    };
    HostTensor short_tokens = tokens, wrong_dtype = tokens, truncated = tokens;
    short_tokens.shape = {3, 6};
    wrong_dtype.dtype = DType::kI32;
    truncated.bytes = tokens.bytes.slice(0, 10);
    EXPECT_EQ(code(short_tokens, x), ErrorCode::kMalformed);
    EXPECT_EQ(code(wrong_dtype, x), ErrorCode::kMalformed);
    EXPECT_EQ(code(truncated, x), ErrorCode::kMalformed);
    EXPECT_EQ(code(HostTensor{}, x), ErrorCode::kMalformed);
    Buffer outside(tokens.bytes.size());
    std::memset(outside.data(), 23, outside.size());  // the vocabulary is 0 .. 22
    EXPECT_EQ(code(make_host_tensor(DType::kU8, tokens.shape, std::move(outside)), x), ErrorCode::kMalformed);
    if (k == 0) {
      EXPECT_EQ(code(tokens, chain.activations[1]), ErrorCode::kMalformed);
      continue;
    }
    HostTensor turned = x, cut = x;
    std::swap(turned.shape[0], turned.shape[1]);
    cut.bytes = x.bytes.slice(0, 4);
    EXPECT_EQ(code(tokens, turned), ErrorCode::kMalformed);
    EXPECT_EQ(code(tokens, cut), ErrorCode::kMalformed);
    EXPECT_EQ(code(tokens, HostTensor{}), ErrorCode::kMalformed);
    EXPECT_EQ(code(tokens, with_value(x, 3, std::numeric_limits<float>::quiet_NaN())), ErrorCode::kNonFinite);
    EXPECT_EQ(code(tokens, with_value(x, 3, std::numeric_limits<float>::infinity())), ErrorCode::kNonFinite);
  }
  chain.forward(9);  // the serial is still free: nothing was kept
}

TEST_P(ExecutorContract, RefusesMalformedGradientsAndAddsNothing) {
  chain.count(1, kA);
  chain.forward(2);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const std::vector<float> before = chain.read(k, ArenaRole::kAccumulatorA);
    EXPECT_EQ(chain.at(k).backward(99, chain.gradients[k], kA).code(), ErrorCode::kGone);
    if (k + 1 == chain.size()) {
      EXPECT_EQ(chain.at(k).backward(2, chain.activations[k], kA).code(), ErrorCode::kMalformed);
    } else {
      HostTensor turned = chain.gradients[k];
      std::swap(turned.shape[1], turned.shape[2]);
      EXPECT_EQ(chain.at(k).backward(2, turned, kA).code(), ErrorCode::kMalformed);
      EXPECT_EQ(chain.at(k).backward(2, HostTensor{}, kA).code(), ErrorCode::kMalformed);
    }
    EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorA), before);
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorA), count_tag(microbatch(1)));
  }
}

TEST_P(ExecutorContract, RefusesANonFiniteGradientBeforeItIsAddedAndTakesTheRightOneLater) {
  chain.count(1, kA);
  chain.forward(2);
  for (std::size_t k = 0; k + 1 < chain.size(); ++k) {
    const std::vector<float> before = chain.read(k, ArenaRole::kAccumulatorA);
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      const Result<BackwardOutput> out = chain.at(k).backward(2, with_value(chain.gradients[k], 5, bad), kA);
      ASSERT_FALSE(out.ok());
      EXPECT_EQ(out.code(), ErrorCode::kNonFinite);
      EXPECT_NE(out.error().message.find("gradient"), std::string::npos) << out.error().message;
    }
    EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorA), before);
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorA), count_tag(microbatch(1)));
  }
  chain.backward(2, kA);
  EXPECT_EQ(chain.tag(0, ArenaRole::kAccumulatorA), count_tag(microbatch(1)) + count_tag(microbatch(2)));
}

TEST_P(ExecutorContract, UndoLeavesTheSumOfTheOthers) {
  for (const std::uint64_t serial : {1, 2, 3}) chain.count(serial, kA);
  Chain others = another();
  for (const std::uint64_t serial : {1, 3}) others.count(serial, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const Result<bool> exact = chain.at(k).undo(2);
    ASSERT_TRUE(exact.ok());
    EXPECT_TRUE(*exact);
    expect_near(chain.read(k, ArenaRole::kAccumulatorA), others.read(k, ArenaRole::kAccumulatorA), tolerance());
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorA), others.tag(k, ArenaRole::kAccumulatorA));
    EXPECT_EQ(chain.at(k).undo(2).code(), ErrorCode::kGone) << "an undone entry is forgotten";
  }
}

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
  for (const InnerStepResult& result : step(kA)) EXPECT_EQ(result.graphs_dropped, 1u);
  for (const BackwardOutput& out : chain.backward(1, kA)) {
    EXPECT_TRUE(out.recomputed);
    EXPECT_EQ(out.stamp, 2u);
  }
  for (const BackwardOutput& out : chain.backward(2, kA)) {
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

TEST_P(ExecutorContract, SettledContributionsStay) {
  chain.count(1, kA);
  const std::vector<float> counted = chain.read(1, ArenaRole::kAccumulatorA);
  chain.at(1).settle(1);
  EXPECT_EQ(chain.read(1, ArenaRole::kAccumulatorA), counted);
  EXPECT_EQ(chain.at(1).undo(1).code(), ErrorCode::kGone);
}

TEST_P(ExecutorContract, DroppedForwardsAreGone) {
  chain.forward(1);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    chain.at(k).drop(1);
    chain.at(k).drop(1);  // of an entry that is not there: nothing to do
    EXPECT_EQ(chain.at(k).backward(1, HostTensor{}, kA).code(), ErrorCode::kGone);
  }
}

TEST_P(ExecutorContract, AShiftIsAddedWithTheNextInnerStep) {
  Chain plain = another();
  for (Chain* each : {&chain, &plain}) each->count(1, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const std::vector<float> snapshot = chain.read(k, ArenaRole::kCurrent);
    std::vector<float> candidate = snapshot;
    for (float& value : candidate) value += 2.0f;
    chain.write(k, ArenaRole::kSnapshot, snapshot);
    chain.write(k, ArenaRole::kCandidate, candidate);
    Arena& arena = chain.at(k).arena();
    arena.tag(ArenaRole::kSnapshot) = 5;
    arena.tag(ArenaRole::kCandidate) = 12;
    EXPECT_FALSE(chain.at(k).shift_pending());
    chain.at(k).set_shift();
    chain.write(k, ArenaRole::kCandidate, snapshot);  // may be reused at once
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
    std::vector<float> candidate = start;
    for (float& value : candidate) value += 1.0f;
    chain.write(k, ArenaRole::kSnapshot, start);
    chain.write(k, ArenaRole::kCandidate, candidate);
    chain.at(k).arena().tag(ArenaRole::kCandidate) = 3;
    chain.at(k).set_shift();
    chain.at(k).set_shift();
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
    EXPECT_EQ(chain.at(k).begin_write(), 1u);
    chain.write(k, ArenaRole::kOther, own);
    chain.at(k).arena().tag(ArenaRole::kOther) = 9;
    EXPECT_EQ(chain.at(k).flip().stamp, 2u);
    EXPECT_EQ(chain.read(k, ArenaRole::kCurrent), own);
    EXPECT_EQ(chain.tag(k, ArenaRole::kCurrent), 9u);
  }
  for (const BackwardOutput& out : chain.backward(2, kA)) EXPECT_FALSE(out.recomputed);
  for (const BackwardOutput& out : chain.backward(1, kA)) EXPECT_TRUE(out.recomputed);
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
  for (const BackwardOutput& out : chain.backward(1, kA)) EXPECT_FALSE(out.recomputed);
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

TEST_P(ExecutorContract, AClearedWindowIsEmpty) {
  chain.count(1, kB);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    chain.at(k).settle(1);
    chain.at(k).clear_window(kB);
    const std::vector<float> sums = chain.read(k, ArenaRole::kAccumulatorB);
    EXPECT_EQ(sums, std::vector<float>(sums.size(), 0.0f));
    EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorB), 0u);
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
    const Result<ForwardOutput> out = chain.at(k).evaluate({1, microbatch(1), contract_tokens(1), x});
    ASSERT_TRUE(out.ok()) << out.error().message;
    x = out->activation;
    loss = out->loss_sum;
  }
  EXPECT_EQ(loss, first) << "the anchor still holds the first parameters";
  for (const BackwardOutput& out : chain.backward(1, kB)) EXPECT_FALSE(out.recomputed) << "entry 1 is the forward's, not the evaluation's";
}

}  // namespace shoal
