#include "text/tokenizer.h"

#include <gmock/gmock.h>

#include "tests/text/tokenizer_texts.h"
#include "text/utf8.h"

namespace shoal {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string joined_bytes(const Tokenizer& tokenizer, const Ids& ids) {
  std::string bytes;
  for (const std::uint32_t id : ids) bytes += tokenizer.bytes_of(id);
  return bytes;
}

// What stands in front of the text in the template, alone or in a sequence of processors.
TEST(TokenizerTest, KnowsWhatItsPostProcessorPutsInFront) {
  const nlohmann::json begin = {{"SpecialToken", {{"id", "B"}, {"type_id", 0}}}}, text = {{"Sequence", {{"id", "A"}}}};
  const nlohmann::json tokens = {{"B", {{"id", "B"}, {"ids", {3, 4}}, {"tokens", {"x", "y"}}}}};
  const auto templated = [&](const nlohmann::json& single) {
    return nlohmann::json{{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", tokens}};
  };
  const nlohmann::json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  for (const auto& [processor, expected] : std::vector<std::pair<nlohmann::json, Ids>>{
           {nullptr, {}},
           {level, {}},
           {templated({begin, text, begin}), {3, 4}},
           {templated({text, begin}), {}},
           {templated({begin, begin, text}), {3, 4, 3, 4}},
           {{{"type", "Sequence"}, {"processors", {level, templated({begin, text})}}}, {3, 4}}}) {
    nlohmann::json file = small_tokenizer();
    file["post_processor"] = processor;
    const auto tokenizer = parse(file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    EXPECT_EQ(tokenizer->begin(), expected) << processor.dump();
    EXPECT_EQ(encoded(*tokenizer, "ab"), encoded(parse(small_tokenizer()).value(), "ab"));
  }
  for (const nlohmann::json& wrong :
       {nlohmann::json{{"B", {{"ids", {100'000}}}}}, {{"B", {{"ids", "3"}}}}, {{"C", 1}}, nlohmann::json()}) {
    nlohmann::json file = small_tokenizer();
    file["post_processor"] = templated({begin, text});
    file["post_processor"]["special_tokens"] = wrong;
    EXPECT_EQ(parse(file).code(), ErrorCode::kMalformed) << wrong.dump();
  }
}

TEST(TokenizerTest, OneOfAnotherFormIsRefusedWithWhatMakesTheFile) {
  for (const std::string_view other : {"\x0a\x0e\x0a\x05<unk>\x15", "IQ== 0\nIg== 1\n", ""}) {
    const auto parsed = Tokenizer::parse(view_of(other), "tokenizer.model");
    ASSERT_FALSE(parsed.ok());
    EXPECT_NE(parsed.error().message.find("AutoTokenizer"), std::string::npos) << parsed.error().message;
  }
  const auto pointer =
      Tokenizer::parse(view_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "t.json");
  EXPECT_NE(pointer.error().message.find("git lfs pull"), std::string::npos) << pointer.error().message;
}

TEST(TokenizerTest, AByteLevelTextComesBackAsItWas) {
  const std::string text = with_replacements(file_text(kGolden + "text.bin"));
  for (const char* kind : {"gpt2", "llama3", "smollm"}) {
    const Tokenizer tokenizer = Tokenizer::load(kGolden + kind + ".json").value();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.size(), text.find('\n', at)) + 1;
      const std::string line = text.substr(at, end - at);
      at = end;
      if (line.find("[MASK]") != std::string::npos) continue;  // takes the spaces around it
      EXPECT_EQ(tokenizer.decode(encoded(tokenizer, line), true), line) << kind;
    }
  }
}

TEST(TokenizerTest, TokensOneByOneAreTheBytesOfTheText) {
  const std::string text = with_replacements(file_text(kGolden + "text.bin"));
  const Tokenizer tokenizer = Tokenizer::load(kGolden + "gpt2.json").value();
  const Ids ids = encoded(tokenizer, text);
  EXPECT_EQ(joined_bytes(tokenizer, ids), text);
  EXPECT_EQ(tokenizer.decode(ids, true), text);
}

TEST(TokenizerTest, WithByteFallbackTokensOneByOneKeepTheSpaceInFront) {
  const Tokenizer tokenizer = Tokenizer::load(kGolden + "llama2.json").value();
  const Ids ids = encoded(tokenizer, "the \xE4\xBD\xA0 \xF0\x9F\x98\x80.");
  EXPECT_EQ(joined_bytes(tokenizer, ids), " the \xE4\xBD\xA0 \xF0\x9F\x98\x80.");
  EXPECT_EQ(tokenizer.decode(ids), "the \xE4\xBD\xA0 \xF0\x9F\x98\x80.");
}

TEST(TokenizerTest, ALineOfAMegabyteWithoutASpaceIsEncoded) {
  std::string line;
  for (std::uint32_t state = 1; line.size() < (1u << 20); state = state * 1664525 + 1013904223)
    line.push_back("aeilnorst"[(state >> 24) % 9]);  // which all of them know
  for (const char* kind : {"gpt2", "llama3", "llama2", "inner_marks"}) {
    const Tokenizer tokenizer = Tokenizer::load(kGolden + kind + ".json").value();
    EXPECT_EQ(tokenizer.decode(encoded(tokenizer, line)), line) << kind;
  }
  const Tokenizer tokenizer = Tokenizer::load(kGolden + "gpt2.json").value();
  const std::string spaces(1 << 20, ' ');
  EXPECT_EQ(tokenizer.decode(encoded(tokenizer, spaces)), spaces);
}

TEST(TokenizerTest, ALongWordMergesAsAShortOneDoes) {
  const Tokenizer tokenizer = parse(small_tokenizer()).value();
  const Ids abc = encoded(tokenizer, "abc");
  ASSERT_EQ(abc, Ids({257}));
  std::string word;
  for (int i = 0; i < 100; ++i) word += "abc";
  EXPECT_EQ(encoded(tokenizer, word), Ids(100, abc[0]));
}

TEST(TokenizerTest, TellsTokensByContentAndEnd) {
  const Tokenizer gpt2 = Tokenizer::load(kGolden + "gpt2.json").value();
  EXPECT_EQ(gpt2.vocabulary(), 700u);
  EXPECT_EQ(gpt2.end_of_text(), std::optional(0u));
  EXPECT_TRUE(gpt2.is_special(0));
  EXPECT_FALSE(gpt2.is_special(1));
  EXPECT_FALSE(gpt2.is_special(700));
  EXPECT_EQ(gpt2.bytes_of(0), "<|endoftext|>");
  EXPECT_EQ(gpt2.bytes_of(700), "");
  EXPECT_EQ(gpt2.bytes_of(*gpt2.id_of("\xC4\xA0")), " ");
  EXPECT_FALSE(gpt2.id_of("no token").has_value());
  EXPECT_EQ(gpt2.decode(Ids{0, 700, 0}), "");
  const Tokenizer llama2 = Tokenizer::load(kGolden + "llama2.json").value();
  EXPECT_EQ(llama2.end_of_text(), llama2.id_of("</s>"));
  EXPECT_EQ(llama2.bytes_of(*llama2.id_of("<0xF0>")), "\xF0");
  EXPECT_EQ(gpt2.digest(), blake2b_256(view_of(file_text(kGolden + "gpt2.json"))));
}

TEST(TokenizerTest, NamesAFileThatIsNotThere) {
  const auto loaded = Tokenizer::load(kGolden + "no.json");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.code(), ErrorCode::kMissing);
  EXPECT_THAT(loaded.error().message, HasSubstr("no.json"));
}

struct Refusal {
  std::string pointer;  // of the value that is set
  json value;
  ErrorCode code;
  std::string said;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.pointer << " = " << refusal.value; }

class RefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, IsNamed) {
  json tokenizer = small_tokenizer();
  ASSERT_TRUE(parse(tokenizer).ok());
  tokenizer[json::json_pointer(GetParam().pointer)] = GetParam().value;
  const auto parsed = parse(tokenizer);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.code(), GetParam().code) << parsed.error().message;
  EXPECT_THAT(parsed.error().message, HasSubstr(GetParam().said));
  EXPECT_THAT(parsed.error().message, HasSubstr("tokenizer.json"));
  EXPECT_THAT(parsed.error().message, HasSubstr("HINT: "));
}

json split_by(const std::string& pattern) {
  return {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}}, {{"type", "ByteLevel"}}}}};
}

json added(std::uint32_t id, const std::string& content) { return {{{"id", id}, {"content", content}}}; }

constexpr ErrorCode kNotOurs = ErrorCode::kUnsupported;
constexpr ErrorCode kBroken = ErrorCode::kMalformed;

INSTANTIATE_TEST_SUITE_P(
    WhatWeDoNotHave, RefusalTest,
    testing::Values(
        Refusal{"/model/type", "WordPiece", kNotOurs, R"("model.type" is "WordPiece")"},
        Refusal{"/model/type", "Unigram", kNotOurs, R"("model.type" is "Unigram")"},
        Refusal{"/model/dropout", 0.1, kNotOurs, R"("model.dropout" is 0.1)"},
        Refusal{"/model/end_of_word_suffix", "</w>", kNotOurs, R"("model.end_of_word_suffix" is "</w>")"},
        Refusal{"/model/continuing_subword_prefix", "##", kNotOurs, R"("model.continuing_subword_prefix" is "##")"},
        Refusal{"/model/byte_fallback", true, kNotOurs, "model.byte_fallback"},
        Refusal{"/normalizer", {{"type", "Lowercase"}}, kNotOurs, R"("normalizer" is {"type":"Lowercase"})"},
        Refusal{
            "/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "a"}}}, {"content", "b"}}, kNotOurs, "Regex"},
        Refusal{"/normalizer", {{"type", "Prepend"}, {"prepend", std::string(300, 'a')}}, kNotOurs, "as long"},
        Refusal{"/pre_tokenizer", {{"type", "Whitespace"}}, kNotOurs, R"("pre_tokenizer" is {"type":"Whitespace"})"},
        Refusal{"/pre_tokenizer", split_by("a{2}?"), kNotOurs, "'{2}?' in the pattern a{2}?"},
        Refusal{"/pre_tokenizer", split_by("(a"), kNotOurs, "of the pattern"},
        Refusal{"/decoder", {{"type", "CTC"}}, kNotOurs, R"("decoder" is {"type":"CTC"})"},
        Refusal{"/decoder",
                {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(257, 'b')}},
                kNotOurs,
                "as long"},
        Refusal{"/decoder", nullptr, kNotOurs, R"("decoder" is null)"}));

INSTANTIATE_TEST_SUITE_P(
    WhatIsBroken, RefusalTest,
    testing::Values(Refusal{"/model", nullptr, kBroken, R"("model" is no object)"},
                    Refusal{"/model/vocab", json::array(), kBroken, R"("model.vocab" is no object)"},
                    Refusal{"/model/vocab/abc", 258, kBroken, R"(hole: 258 tokens, and "abc" has the id 258)"},
                    Refusal{"/model/vocab/abc", -1, kBroken, R"("abc" has the id -1)"},
                    Refusal{"/model/vocab/abc", 256, kBroken, R"(gives the id 256 to "ab" and to "abc")"},
                    Refusal{"/model/merges/1", "ab d", kBroken, R"(is of "abd", which is no token)"},
                    Refusal{"/model/merges/1", "a b c", kBroken, R"("model.merges"[1], "a b c", is no pair)"},
                    Refusal{"/model/merges/1", {"ab"}, kBroken, "is no pair"},
                    Refusal{"/model/merges/1", 7, kBroken, "is no pair"},
                    Refusal{"/model/ignore_merges", 1, kBroken, R"("ignore_merges" is neither)"},
                    Refusal{"/added_tokens", added(300, "<x>"), kBroken,
                            R"(gives the id 300 to "<x>", and the next one is 258)"},
                    Refusal{"/added_tokens", added(3, "abc"), kBroken, R"("abc", and the vocabulary gives it 257)"},
                    Refusal{"/added_tokens", added(258, ""), kBroken, "empty token"},
                    Refusal{"/added_tokens", {{{"id", 258}}}, kBroken, "lacks id or content"},
                    Refusal{"/decoder", {{"type", "Strip"}, {"content", " "}}, kBroken, R"("decoder")"},
                    Refusal{"/normalizer", {{"type", "Sequence"}}, kBroken, R"(Sequence without "normalizers")"}));

TEST(TokenizerTest, RefusesWhatIsNoJson) {
  const auto parsed = Tokenizer::parse(view_of("{\"model\":"), "x.json");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.code(), kBroken);
  EXPECT_THAT(parsed.error().message, HasSubstr("x.json"));
}

TEST(TokenizerTest, NeedsATokenForTheUnknownOnlyWhereBytesLackOne) {
  json tokenizer = small_tokenizer();
  tokenizer["model"]["unk_token"] = "<unk>";
  EXPECT_TRUE(parse(tokenizer).ok());
  tokenizer["pre_tokenizer"] = nullptr;
  const auto parsed = parse(tokenizer);
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().message, HasSubstr("\"<unk>\", which is no token"));
}

}  // namespace
}  // namespace shoal
