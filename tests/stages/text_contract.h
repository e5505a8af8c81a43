#pragma once
// What holds for a text on every executor (stages/text_stage.h): included by executor_contract.h's instantiations.
#include <gtest/gtest.h>

#include "tests/stages/chain.h"

namespace shoal {

class TextContract : public ::testing::TestWithParam<ExecutorMaker> {
 protected:
  static HostTensor ids(const std::vector<std::uint8_t>& values) {
    Buffer buffer(values.size());
    std::ranges::copy(values, buffer.data());
    return make_host_tensor(DType::kU8, {1, static_cast<std::int64_t>(values.size())}, std::move(buffer));
  }
  // The logits behind these ids, through all stages.
  static Result<HostTensor> extend(std::vector<std::unique_ptr<TextStage>>& text, const HostTensor& tokens) {
    HostTensor travelling, logits;
    for (const auto& stage : text) {
      HostCoder coder(std::move(travelling));
      SHOAL_ASSIGN(logits, stage->extend(tokens, coder));
      travelling = coder.output();
    }
    return logits;
  }
  static std::vector<std::unique_ptr<TextStage>> begin(Chain& chain) {
    std::vector<std::unique_ptr<TextStage>> text;
    for (std::size_t stage = 0; stage < chain.size(); ++stage) text.push_back(chain.at(stage).begin_text());
    return text;
  }
  static std::vector<float> floats(const HostTensor& tensor) { return {tensor.f32().begin(), tensor.f32().end()}; }
};

TEST_P(TextContract, TheLogitsAreThoseOfTheSplit) {
  const std::vector<std::vector<std::uint8_t>> pieces{{3, 1, 4}, {1}, {5, 9}};
  Chain whole(GetParam(), contract_model(), 1), split(GetParam(), contract_model(), 3);
  auto one = begin(whole), three = begin(split);
  for (const auto& piece : pieces) {
    const auto a = extend(one, ids(piece)), b = extend(three, ids(piece));
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->shape, (Shape{contract_model().vocabulary}));
    // An executor that stands for a model knows its stage's number.
    if (GetParam().tolerance > 0) expect_near(floats(*a), floats(*b), GetParam().tolerance);
  }
  EXPECT_EQ(three.back()->places(), 6u);
  EXPECT_GT(three.back()->bytes(), 0u);
}

TEST_P(TextContract, WhatIsRefusedLeavesTheTextAsItWas) {
  Chain chain(GetParam(), contract_model(), 2), other(GetParam(), contract_model(), 2);
  auto text = begin(chain), untouched = begin(other);
  ASSERT_TRUE(extend(text, ids({2, 7})).ok());
  ASSERT_TRUE(extend(untouched, ids({2, 7})).ok());
  EXPECT_EQ(extend(text, ids({23})).code(), ErrorCode::kMalformed) << "an id beyond the vocabulary";
  EXPECT_EQ(extend(text, ids({1, 2, 3, 4, 5, 6, 7})).code(), ErrorCode::kMalformed) << "more places than the context";
  EXPECT_EQ(extend(text, make_host_tensor(DType::kU8, {2, 1}, Buffer(2))).code(), ErrorCode::kMalformed);
  HostCoder wrong(make_host_tensor(DType::kF32, {1, 2, 3}, Buffer(24)));
  EXPECT_EQ(text.back()->extend(ids({1}), wrong).code(), ErrorCode::kMalformed) << "another activation than (1, N, d)";
  const auto after = extend(text, ids({5})), wanted = extend(untouched, ids({5}));
  ASSERT_TRUE(after.ok() && wanted.ok());
  EXPECT_EQ(floats(*after), floats(*wanted));
  EXPECT_EQ(text.front()->places(), 3u);
}

TEST_P(TextContract, TrainingDoesNotChangeATextOfTheAnchor) {
  Chain chain(GetParam(), contract_model(), 2), still(GetParam(), contract_model(), 2);
  auto text = begin(chain), untouched = begin(still);
  chain.count(1, kA);
  for (std::size_t stage = 0; stage < chain.size(); ++stage) {
    chain.at(stage).settle(1);
    ASSERT_TRUE(chain.at(stage).inner_step(kA, contract_step()).ok());
  }
  const auto after = extend(text, ids({5, 6})), wanted = extend(untouched, ids({5, 6}));
  ASSERT_TRUE(after.ok() && wanted.ok());
  EXPECT_EQ(floats(*after), floats(*wanted));
}

}  // namespace shoal
