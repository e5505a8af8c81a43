#include "text/text_ends.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/common/scratch_folder.h"
#include "tests/text/tokenizer_texts.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

// Tokens <a>, <b>, </s> and <|endoftext|> behind the bytes and two words: ids 258 to 261.
Tokenizer tokenizer_of_ends() {
  Json file = small_tokenizer();
  for (std::uint32_t id = 258; const char* content : {"<a>", "<b>", "</s>", "<|endoftext|>"})
    file["added_tokens"].push_back({{"id", id++}, {"content", content}, {"special", true}});
  return parse(file).value();
}

struct Told {
  std::string what;
  std::vector<std::pair<std::string, Json>> files;  // in the folder of model and tokenizer
  std::uint32_t document;
  Ids writing;
};

const Json kList = {258, 259};
const std::vector<Told> kTold = {
    {"nothing", {}, 261, {261}},
    {"null",
     {{"config.json", {{"eos_token_id", nullptr}}}, {"tokenizer_config.json", {{"eos_token", nullptr}}}},
     261,
     {261}},
    {"the tokenizer's", {{"tokenizer_config.json", {{"eos_token", "</s>"}}}}, 260, {260}},
    {"an object", {{"tokenizer_config.json", {{"eos_token", {{"content", "<b>"}, {"lstrip", false}}}}}}, 259, {259}},
    {"an older file", {{"special_tokens_map.json", {{"eos_token", "<a>"}}}}, 258, {258}},
    {"the newer file counts",
     {{"special_tokens_map.json", {{"eos_token", "<a>"}}}, {"tokenizer_config.json", {{"eos_token", "<b>"}}}},
     259,
     {259}},
    {"config", {{"config.json", {{"eos_token_id", 259}}}}, 259, {259}},
    {"generation counts more",
     {{"config.json", {{"eos_token_id", 259}}}, {"generation_config.json", {{"eos_token_id", 258}}}},
     258,
     {258}},
    {"generation says nothing",
     {{"config.json", {{"eos_token_id", 259}}}, {"generation_config.json", {{"eos_token_id", nullptr}}}},
     259,
     {259}},
    {"a list", {{"generation_config.json", {{"eos_token_id", kList}}}}, 258, {258, 259}},
    {"a list in config", {{"config.json", {{"eos_token_id", kList}}}}, 258, {258, 259}},
    {"all",
     {{"config.json", {{"eos_token_id", 257}}},
      {"generation_config.json", {{"eos_token_id", kList}}},
      {"tokenizer_config.json", {{"eos_token", "</s>"}}}},
     260,
     {258, 259}},
    {"a token that is none", {{"tokenizer_config.json", {{"eos_token", "<none>"}}}}, 261, {261}},
    {"an id of nobody's", {{"config.json", {{"eos_token_id", 70'000}}}}, 261, {70'000}},
    {"no id", {{"config.json", {{"eos_token_id", -1}}}}, 261, {261}},
    {"no object", {{"config.json", 3}, {"tokenizer_config.json", {1}}}, 261, {261}},
};

TEST(TextEndsTest, TheFoldersWordIsTaken) {
  const Tokenizer tokenizer = tokenizer_of_ends();
  for (const Told& told : kTold) {
    ScratchFolder folder;
    for (const auto& [name, json] : told.files) folder.write(name, json.dump());
    // Beside the tokenizer alone, beside the model alone, and of both.
    for (const auto& [model, file] : {std::pair(std::string(), folder / "tokenizer.json"),
                                      {folder.path(), std::string()},
                                      {folder.path(), folder / "tokenizer.json"}}) {
      const TextEnds ends = text_ends_of(model, file);
      EXPECT_EQ(document_end(ends, tokenizer), told.document) << told.what;
      EXPECT_EQ(writing_ends(ends, tokenizer), told.writing) << told.what;
    }
    // Written to another folder they say the same.
    ScratchFolder other;
    const TextEnds ends = text_ends_of(folder.path(), {});
    other.write(kTokenizerConfigName, tokenizer_config_text(ends));
    other.write(kGenerationConfigName, generation_config_text(ends));
    const TextEnds again = text_ends_of(other.path(), {});
    EXPECT_EQ(document_end(again, tokenizer), told.document) << told.what;
    EXPECT_EQ(writing_ends(again, tokenizer), told.writing) << told.what;
  }
}

TEST(TextEndsTest, IdsAreTheModelsAndContentsTheTokenizers) {
  ScratchFolder model, tokenizer;
  for (const auto& [folder, id, content] : {std::tuple(&model, 258, "<a>"), {&tokenizer, 259, "<b>"}}) {
    folder->write("config.json", Json{{"eos_token_id", id}, {"bos_token_id", id}}.dump());
    folder->write("tokenizer_config.json", Json{{"eos_token", content}, {"bos_token", content}}.dump());
  }
  const TextEnds ends = text_ends_of(model.path(), tokenizer / "tokenizer.json");
  EXPECT_EQ(ends.end_ids, Ids{258});
  EXPECT_EQ(ends.begin_id, 258u);
  EXPECT_EQ(ends.end, "<b>");
  EXPECT_EQ(ends.begin, "<b>");
}

}  // namespace
}  // namespace shoal
