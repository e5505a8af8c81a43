#include <gmock/gmock.h>

#include "tests/text/tokenizer_texts.h"
#include "text/train_bpe.h"

namespace shoal {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(BpeTrainerTest, MergesTheMostFrequentPairAndOfEqualOnesTheLowerIds) {
  BpeTrainer trainer;
  trainer.add("abab abab cd cd xyxyxyxyxy");
  const json file = json::parse(trainer.finish(300).value());
  // "xy" stands five times, "ab" and then "xyxy" four times, and of the pairs with two "cd" has the lowest ids.
  EXPECT_THAT(std::vector<json>(file["model"]["merges"].begin(), file["model"]["merges"].begin() + 4),
              ElementsAre("x y", "a b", "xy xy", "c d"));
  EXPECT_EQ(file["model"]["vocab"]["<|endoftext|>"], 0);
  EXPECT_EQ(file["model"]["vocab"]["!"], 1);
}

TEST(BpeTrainerTest, WhatItLearnedEncodesEveryText) {
  const std::string text = file_text(kGolden + "text.bin");
  BpeTrainer trainer;
  trainer.add(text);
  const std::string file = trainer.finish(1000).value();
  const Tokenizer tokenizer = Tokenizer::parse(view_of(file), "trained").value();
  EXPECT_EQ(tokenizer.vocabulary(), 1000u);
  EXPECT_EQ(tokenizer.end_of_text(), std::optional(0u));
  for (const std::string line : {"the theory", "\u4f60\u597d \U0001F600", "a\r\n\tb  c\n"})
    EXPECT_EQ(tokenizer.decode(encoded(tokenizer, line)), line);
  EXPECT_LT(encoded(tokenizer, text).size(), encoded(parse(small_tokenizer()).value(), text).size() * 2 / 3);
}

TEST(BpeTrainerTest, LearnsWhatThePackageLearns) {
  const std::string text = file_text(kGolden + "text.bin");
  BpeTrainer trainer;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.size() - 1, text.find('\n', at)) + 1;
    trainer.add(std::string_view(text).substr(at, end - at));
    at = end;
  }
  const json learned = json::parse(trainer.finish(600).value())["model"]["merges"];
  EXPECT_GT(learned.size(), 300u);
  EXPECT_EQ(learned, json::parse(file_text(kGolden + "expected.json"))["merges"]);
}

TEST(BpeTrainerTest, TheOrderOfTextsMakesNoDifference) {
  BpeTrainer one, other;
  one.add("it was the best of times");
  one.add("it was the worst of times");
  other.add("it was the worst of times");
  other.add("it was the best of times");
  EXPECT_EQ(*one.finish(280), *other.finish(280));
}

TEST(BpeTrainerTest, StopsWhereNothingIsSeenTwice) {
  BpeTrainer trainer;
  trainer.add("abc abc");
  const json file = json::parse(trainer.finish(1000).value());
  EXPECT_THAT(file["model"]["merges"], ElementsAre("a b", "ab c"));
}

TEST(BpeTrainerTest, CanBeStoppedBetweenTwoTokens) {
  BpeTrainer trainer;
  trainer.add(file_text(kGolden + "text.bin"));
  int asked = 0;
  EXPECT_EQ(trainer.finish(1000, [&asked] { return ++asked == 5; }).code(), ErrorCode::kInterrupted);
  EXPECT_EQ(asked, 5);
}

TEST(BpeTrainerTest, RefusesNoTextAndVocabulariesBeyondBounds) {
  BpeTrainer trainer;
  EXPECT_THAT(trainer.finish(300).error().message, HasSubstr("from no text"));
  trainer.add("text");
  for (const std::uint32_t vocabulary : {kTrainedVocabularyMin - 1, kTrainedVocabularyMax + 1}) {
    const auto refused = trainer.finish(vocabulary);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.code(), ErrorCode::kInput);
    EXPECT_THAT(refused.error().message, HasSubstr("HINT: 257 to 262144 can"));
  }
}

}  // namespace
}  // namespace shoal
