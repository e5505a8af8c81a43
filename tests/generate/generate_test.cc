#include "runtime/generate/generate.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace shoal {
namespace {

using testing::HasSubstr;

// The likeliest id is the number of places that it has seen, from 'a' on, and of a longer text than the context it is
// told nothing.
class Counting final : public TextModel {
 public:
  Result<std::vector<float>> extend(std::span<const std::uint32_t> ids) override {
    seen.insert(seen.end(), ids.begin(), ids.end());
    EXPECT_LE(seen.size(), context());
    pieces.push_back(ids.size());
    if (fails) return make_error(ErrorCode::kGone, "a stage is gone");
    std::vector<float> logits(256);
    logits['a' + seen.size() % 26] = 1;
    return logits;
  }
  std::uint64_t context() const override { return 8; }
  void restart() override {
    seen.clear();
    ++restarts;
  }
  std::vector<std::uint32_t> seen;
  std::vector<std::size_t> pieces;
  int restarts = 0;
  bool fails = false;
};

GenerateOptions greedy(std::string prompt, std::uint64_t tokens) {
  GenerateOptions options{.prompt = std::move(prompt), .tokens = tokens, .sampling = {}};
  options.sampling.temperature = 0;
  return options;
}

TEST(GenerateTest, ThePromptGoesInAtOnceAndThenIdById) {
  Counting model;
  std::string shown;
  const auto made = generate(greedy("xyz", 4), TextCode(), model, [&](const std::string& piece) {
    shown += piece;
    return true;
  });
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->text, "defg");
  EXPECT_EQ(shown, made->text);
  EXPECT_EQ(made->stopped_by, "tokens");
  EXPECT_THAT(model.pieces, testing::ElementsAre(3, 1, 1, 1));
}

TEST(GenerateTest, BeyondTheContextItGoesOnFromTheLastHalf) {
  Counting model;
  const auto made = generate(greedy("xyz", 12), TextCode(), model, {});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->ids.size(), 12u);
  EXPECT_GT(model.restarts, 1);
  EXPECT_EQ(std::ranges::count(model.pieces, 4u), model.restarts);
}

TEST(GenerateTest, StopsWhenTheReaderHasEnough) {
  Counting model;
  int pieces = 0;
  const auto made = generate(greedy("x", 100), TextCode(), model, [&](const std::string&) { return ++pieces < 3; });
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->stopped_by, "interrupted");
  EXPECT_EQ(made->ids.size(), 3u);
}

TEST(GenerateTest, APromptThatCannotGoOnIsRefused) {
  Counting model;
  EXPECT_THAT(generate(greedy("12345678", 1), TextCode(), model, {}).error().message, HasSubstr("context is 8"));
  EXPECT_THAT(generate(greedy("", 1), TextCode(), model, {}).error().message, HasSubstr("--prompt"));
}

TEST(GenerateTest, TheModelsErrorEndsIt) {
  Counting model;
  model.fails = true;
  EXPECT_EQ(generate(greedy("x", 1), TextCode(), model, {}).code(), ErrorCode::kGone);
}

}  // namespace
}  // namespace shoal
