#include "runtime/generate/generate.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/common/scratch_folder.h"

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

TEST(GenerateTest, AnyOfTheEndsStopsIt) {
  for (const std::vector<std::uint32_t>& ends : {std::vector<std::uint32_t>{'f'}, {'z', 'f'}, {'f', 'g'}, {}}) {
    Counting model;
    const auto made = generate(greedy("xyz", 6), TextCode({}, ends), model, {});
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(made->stopped_by, ends.empty() ? "tokens" : "end of text");
    EXPECT_EQ(made->text.substr(0, 2), "de");
    EXPECT_EQ(made->ids.size(), ends.empty() ? 6u : 2u);
    GenerateOptions on = greedy("xyz", 4);
    on.go_on = true;
    Counting again;
    EXPECT_EQ(generate(on, TextCode({}, ends), again, {})->text, "defg");
  }
}

TEST(GenerateTest, ATextBeginsAsTheTokenizerHasItOrBehindAnEnd) {
  std::string file = ScratchFolder::read(SHOAL_SOURCE_DIR "/tests/text/golden/llama3.json");
  const std::string none = "\"post_processor\":null";
  file.replace(file.find(none), none.size(),
               R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"B"}}],
                  "special_tokens":{"B":{"ids":[0]}}})");
  const auto tokenizer = std::make_shared<const Tokenizer>(
      Tokenizer::parse({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "llama3").value());
  ASSERT_FALSE(tokenizer->begin().empty());
  const std::uint32_t begin = tokenizer->begin().front();
  for (const bool wanted : {true, false}) {
    Counting model;
    GenerateOptions options = greedy("ab", 1);
    options.begin = wanted;
    const auto prompt = generate(options, TextCode(tokenizer, {7}), model, {})->prompt;
    EXPECT_EQ(prompt.front() == begin, wanted);
    options.prompt = "";
    Counting empty;
    EXPECT_THAT(generate(options, TextCode(tokenizer, {7}), empty, {})->prompt,
                testing::ElementsAre(wanted ? begin : 7));
  }
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
