// A text that is cut where Tokenizer::safe_cut says has the ids of the whole, whatever its script and the pattern.
#include <gmock/gmock.h>

#include "common/ids.h"
#include "tests/text/tokenizer_texts.h"
#include "text/utf8.h"

namespace shoal {
namespace {

using nlohmann::json;

// What texts of a script are made of.
struct Script {
  std::string name;
  std::vector<std::string> parts;
};

const std::vector<Script>& scripts() {
  static const std::vector<Script> all = {
      {"latin", {"word", "It's", " ", " ", " ", ", ", ".\n\n", "WE'LL", "caf\u00e9", "e\u0301", "-", "\u2019", "x9"}},
      {"cyrillic", {"вода", "берег", "Лодка", " ", " ", ".\n\n", ", ", "!\r\n", "\u0438\u0306"}},
      {"greek", {"νερό", "Βάρκα", " ", " ", "·", ".\n", "\u03b1\u0301"}},
      {"chinese", {"水", "面", "平", "静", "船在", "。", "，", "\u3000", "\n", "「", "」"}},
      {"japanese", {"カタ", "ひら", "漢字", "。", "ー", "\u304b\u3099", "\n"}},
      {"korean", {"물가", "\u1112\u1161\u11ab", " ", ".", "\n"}},
      {"arabic", {"ماء", "قارب", " ", "،", "\u064b", "\n\n", "؟"}},
      {"hindi", {"पानी", "\u0915\u094d\u0937", " ", "।", "\n"}},
      {"thai", {"น้ำ", "เรือ", " ", "\n"}},
      {"emoji", {"\U0001F600", "\U0001F469\u200D\U0001F680", "\u2764\uFE0F", "\U0001F1E9\U0001F1EA", " ", "\n", "!"}},
      {"digits", {"1", "23", "456", "7890", " ", ",", ".", "\n", "\u0663", "\u00bd"}},
      {"blanks", {" ", "  ", "\t", "\u00a0", "\n ", " \n", "a", "      ", "\u3000"}},
      {"newlines", {"\n", "\n\n", "\r\n", "\r", "b", " ", ".\n\n\n", "\n\n\n\n\n\n\n"}},
      {"code", {"if (x)", " {\n", "    ", "return", ";", "\n", "}", "//", "_", "0x1F", "==", "\t"}},
      {"tokens", {"<|endoftext|>", " ", "word", "[MASK]", "<|im_", "start|>", "\n", "  ", ".", "él"}},
  };
  return all;
}

std::string text_of(const std::vector<std::string>& parts, std::uint64_t seed, std::size_t bytes) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < bytes; ++i) text += parts[mix64(seed, i) % parts.size()];
  return text;
}

// As DocumentReader cuts: nothing cut is empty, and the rest is what is short. The pieces, or none: nowhere a safe
// place.
std::vector<std::string_view> pieces_of(const Tokenizer& tokenizer, std::string_view text, std::size_t most,
                                        std::size_t ahead) {
  std::vector<std::string_view> pieces;
  while (text.size() > most) {
    const auto end = tokenizer.safe_cut(whole_characters(text.substr(0, most + ahead)), most);
    if (!end) break;
    EXPECT_GT(*end, 0u);
    EXPECT_LE(*end, most);
    pieces.push_back(text.substr(0, *end));
    text.remove_prefix(*end);
  }
  pieces.push_back(text);
  return pieces;
}

class CutTest : public testing::TestWithParam<std::string> {
 protected:
  Tokenizer tokenizer_ = Tokenizer::load(kGolden + GetParam() + ".json").value();
};

// `ahead` is short, too, so that what a piece is may hang on what was not shown.
TEST_P(CutTest, IdsOfThePiecesAreThoseOfTheWhole) {
  std::size_t pieces_made = 0;
  for (std::size_t s = 0; s <= scripts().size(); ++s) {
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      std::string text;
      if (s < scripts().size()) {
        text = text_of(scripts()[s].parts, seed, 2500);
      } else {
        for (std::uint64_t i = 0; i < 12; ++i)
          text += text_of(scripts()[mix64(seed, i) % s].parts, i, 1 + mix64(i) % 400);
      }
      // Cut within no character.
      while (!is_utf8(text)) text.pop_back();
      const Ids whole = encoded(tokenizer_, text);
      for (const std::size_t most : {40u, 170u, 1500u}) {
        for (const std::size_t ahead : {20u, 1000u}) {
          Ids ids;
          const auto pieces = pieces_of(tokenizer_, text, most, ahead);
          for (const std::string_view piece : pieces) tokenizer_.encode(piece, ids);
          EXPECT_TRUE(ids == whole) << (s < scripts().size() ? scripts()[s].name : "mixed") << " seed " << seed
                                    << " pieces of " << most << ", ahead " << ahead;
          pieces_made += pieces.size();
        }
      }
    }
  }
  EXPECT_GT(pieces_made, 800u);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, CutTest,
                         testing::Values("gpt2", "llama3", "qwen2", "smollm", "o200k", "inner_marks", "other_splits"),
                         [](const auto& info) { return info.param; });

// Digits in threes from the right hang on all that follow; a word is cut only where its pattern ends.
TEST(SafeCutTest, APatternThatLooksFarAheadIsNotCutWithinItsView) {
  json file = small_tokenizer();
  file["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {{{"type", "Split"},
                              {"pattern", {{"Regex", "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))|\\P{N}+"}}},
                              {"behavior", "Isolated"},
                              {"invert", false}},
                             {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  file["model"]["merges"] = {"1 1", "11 1"};
  file["model"]["vocab"]["11"] = 258;
  file["model"]["vocab"]["111"] = 259;
  const auto tokenizer = parse(file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  std::string text;
  for (std::uint64_t i = 0; text.size() < 6000; ++i) text += std::string(mix64(i) % 300, '1') + " of ";
  Ids ids;
  for (const std::string_view piece : pieces_of(*tokenizer, text, 1000, 50)) tokenizer->encode(piece, ids);
  EXPECT_EQ(ids, encoded(*tokenizer, text));
}

TEST(SafeCutTest, ThereIsNoneWhereSomethingIsPutInFrontOfAText) {
  const std::string text = text_of(scripts()[0].parts, 1, 3000);
  for (const char* name : {"llama2", "mistral", "metaspace"})
    EXPECT_EQ(Tokenizer::load(kGolden + name + ".json")->safe_cut(text, 2000), std::nullopt) << name;
}

TEST(SafeCutTest, AWordWithoutEndIsNotCut) {
  const Tokenizer tokenizer = Tokenizer::load(kGolden + "gpt2.json").value();
  EXPECT_EQ(tokenizer.safe_cut(std::string(20'000, 'x'), 10'000), std::nullopt);
  EXPECT_EQ(tokenizer.safe_cut("a" + std::string(20'000, ' ') + "b", 10'000), 1u);
  EXPECT_EQ(tokenizer.safe_cut("ab cd" + std::string(20'000, 'x'), 10'000), 2u);
}

}  // namespace
}  // namespace shoal
