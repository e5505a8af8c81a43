#pragma once
// What every StageExecutor must do, run on each implementation: INSTANTIATE_TEST_SUITE_P(..., ExecutorContract,
// Values(ExecutorMaker{...})). Every check is made at a first, a middle and a last stage. Defines tests: at most one
// file of a program includes it.
#include "tests/stages/contract_fixture.h"
#include "tests/stages/executor_contract_writes.h"

namespace shoal {

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
      const auto out = pass_forward(stage, {9, microbatch(9), std::move(given_tokens)}, std::move(activation));
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
    if (k == 0) continue;
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

TEST_P(ExecutorContract, TakesIdsOf32BitsAndNamesTheOneOutsideTheVocabulary) {
  ModelSpec model = contract_model();
  model.vocabulary = 70'001;
  Chain wide(GetParam(), model, 1);
  const auto forward = [&](std::uint64_t serial, std::uint32_t last) {
    Buffer ids(4 * (model.positions + 1));
    for (std::uint32_t t = 0; t <= model.positions; ++t) ids.as<std::uint32_t>()[t] = t == 4 ? last : 65'536 + t;
    return pass_forward(wide.at(0), {serial, microbatch(serial),
                                     make_host_tensor(DType::kU32, {1, model.positions + 1}, std::move(ids))});
  };
  EXPECT_NE(forward(1, 70'000)->loss_sum, forward(2, 70'000 - 65'536)->loss_sum) << "no bit is left out";
  const Result<Forwarded> outside = forward(3, 70'001);
  ASSERT_EQ(outside.code(), ErrorCode::kMalformed);
  EXPECT_NE(outside.error().message.find("token 70001 at element 4 is outside"), std::string::npos);
}

TEST_P(ExecutorContract, RefusesMalformedGradientsAndAddsNothing) {
  chain.count(1, kA);
  chain.forward(2);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const std::vector<float> before = chain.read(k, ArenaRole::kAccumulatorA);
    EXPECT_EQ(pass_backward(chain.at(k), 99, chain.gradients[k], kA).code(), ErrorCode::kGone);
    if (k + 1 < chain.size()) {
      HostTensor turned = chain.gradients[k];
      std::swap(turned.shape[1], turned.shape[2]);
      EXPECT_EQ(pass_backward(chain.at(k), 2, turned, kA).code(), ErrorCode::kMalformed);
      EXPECT_EQ(pass_backward(chain.at(k), 2, {}, kA).code(), ErrorCode::kMalformed);
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
      const Result<Backwarded> out = pass_backward(chain.at(k), 2, with_value(chain.gradients[k], 5, bad), kA);
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

// What a pass asks of its coder: whatever it wants it asks for once, at a place, in the stage's shape.
class AskedCoder final : public FrameCoder {
 public:
  explicit AskedCoder(HostTensor input) : given_(std::move(input)) {}
  Result<double> decode(const PlacedSpace& to) override {
    asked.push_back(to.shape);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(to.on_host().data()) % kBufferAlignment, 0u);
    if (refuses_input) return make_error(ErrorCode::kCorrupt, "");
    return given_.decode(to);
  }
  Status encode(const PlacedTensor& from) override {
    handed.push_back(from.on_host().shape);
    if (refuses_output) return make_error(ErrorCode::kUnsupported, "");
    return given_.encode(from);
  }
  std::vector<Shape> asked, handed;
  bool refuses_input = false, refuses_output = false;

 private:
  HostCoder given_;
};

TEST_P(ExecutorContract, APassAsksItsCoderOnceForWhatItReadsAndHandsItWhatItMade) {
  chain.count(1, kA);
  const std::vector<Shape> once{{2, 8, chain.at(0).spec().model.wire_width()}}, never;
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const bool first = k == 0, last = k + 1 == chain.size();
    AskedCoder down(chain.activations[k]), anchor(chain.activations[k]), up(chain.gradients[k]);
    ASSERT_TRUE(chain.at(k).evaluate({2, microbatch(1), contract_tokens(1)}, anchor).ok());
    ASSERT_TRUE(chain.at(k).forward({2, microbatch(1), contract_tokens(1)}, down).ok());
    ASSERT_TRUE(chain.at(k).backward_input(2, up).ok());
    ASSERT_TRUE(chain.at(k).backward_weights(2, kA).ok());
    for (const AskedCoder* each : {&down, &anchor}) {
      EXPECT_EQ(each->asked, first ? never : once) << "stage " << k;
      EXPECT_EQ(each->handed, last ? never : once) << "stage " << k;
    }
    EXPECT_EQ(up.asked, last ? never : once) << "stage " << k;
    EXPECT_EQ(up.handed, first ? never : once) << "stage " << k;
  }
}

TEST_P(ExecutorContract, WhatItsCoderRefusesIsNeitherKeptNorAdded) {
  chain.count(1, kA);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const ForwardInput input{2, microbatch(1), contract_tokens(1)};
    const std::vector<float> before = chain.read(k, ArenaRole::kAccumulatorA);
    AskedCoder unread(chain.activations[k]), unsent(chain.activations[k]), up(chain.gradients[k]);
    unread.refuses_input = unsent.refuses_output = up.refuses_input = true;
    if (k > 0) {
      EXPECT_EQ(chain.at(k).forward(input, unread).code(), ErrorCode::kCorrupt);
    }
    if (k + 1 == chain.size()) continue;
    EXPECT_EQ(chain.at(k).forward(input, unsent).code(), ErrorCode::kUnsupported);
    ASSERT_TRUE(pass_forward(chain.at(k), input, chain.activations[k]).ok()) << "the serial is still free";
    EXPECT_EQ(chain.at(k).backward_input(2, up).error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorA), before);
    const Result<Backwarded> again = pass_backward(chain.at(k), 2, chain.gradients[k], kA);
    ASSERT_TRUE(again.ok());
    EXPECT_FALSE(again->recomputed) << "its graph is still there";
  }
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

// The gradient came too late for this stage: the stages before have use for what it hands on.
TEST_P(ExecutorContract, WithoutAWindowAGradientIsHandedOnAndAddedNowhere) {
  const std::size_t k = chain.size() - 1;
  chain.count(1, kA);
  const std::vector<float> before = chain.read(k, ArenaRole::kAccumulatorA);
  Chain other = another();
  for (Chain* each : {&chain, &other}) each->forward(2);
  const auto late = pass_backward(chain.at(k), 2, {}, std::nullopt), counted = pass_backward(other.at(k), 2, {}, kA);
  ASSERT_TRUE(late.ok() && counted.ok());
  ASSERT_TRUE(late->gradient.defined());
  EXPECT_TRUE(std::ranges::equal(late->gradient.f32(), counted->gradient.f32()));
  EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorA), before);
  EXPECT_EQ(chain.tag(k, ArenaRole::kAccumulatorA), count_tag(microbatch(1)));
  EXPECT_EQ(chain.at(k).undo(2).code(), ErrorCode::kGone) << "it is forgotten";
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
    EXPECT_EQ(pass_backward(chain.at(k), 1, {}, kA).code(), ErrorCode::kGone);
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

}  // namespace shoal
