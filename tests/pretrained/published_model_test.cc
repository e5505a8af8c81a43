#include "stages/pretrained/published_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "stages/pretrained/pretrained_folder.h"
#include "tests/pretrained/folder_writer.h"

namespace shoal {
namespace {

std::string text_of_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

ModelSpec untied_model(Json json) {
  json["tie_word_embeddings"] = false;
  return parse_pretrained_config(json.dump())->model;
}

ModelSpec narrow_model(const Json& json, std::uint32_t table) {
  ModelSpec model = untied_model(json);
  model.boundary = 3;
  model.boundary_table = table;
  model.cuts = {1};
  return model;
}

std::vector<float> numbered(const StageSpec& spec) {
  std::vector<float> values(parameter_count(spec));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 253) / 128 - 1;
  return values;
}

void publish(const std::string& folder, const std::vector<StageSpec>& specs, PublishedType type,
             const PublishedEnds& ends) {
  ASSERT_TRUE(begin_published_model(folder).ok());
  for (const StageSpec& spec : specs) ASSERT_TRUE(publish_stage(folder, spec, numbered(spec), type).ok());
  ASSERT_TRUE(finish_published_model(folder, specs, type, ends).ok());
}

TEST(PublishedModelTest, WhatIsWrittenIsReadBackInBothFamiliesTypesAndSplits) {
  for (const ModelSpec& model : {untied_model(gpt2_json()), untied_model(llama_json()), narrow_model(gpt2_json(), 8),
                                 narrow_model(llama_json(), 4), narrow_model(llama_json(), 0)}) {
    for (const PublishedType type : {PublishedType::kFp32, PublishedType::kBf16}) {
      for (const std::uint16_t stages : {1, 2}) {
        FolderWriter folder("published");
        const std::vector<StageSpec> specs = *split_model(model, stages);
        publish(folder.path(), specs, type, {});
        const auto opened = PretrainedFolder::open(folder.path());
        ASSERT_TRUE(opened.ok()) << opened.error().message;
        EXPECT_TRUE(opened->notes().empty());
        ModelSpec expected = model;
        expected.kv_heads = opened->model().kv_heads;  // said in full
        expected.head_width = opened->model().head_width;
        expected.inner = opened->model().inner;
        EXPECT_EQ(opened->model(), expected);
        for (StageSpec spec : specs) {
          spec.model = opened->model();
          std::vector<float> read(parameter_count(spec));
          ASSERT_TRUE(opened->read_stage(spec, read).ok());
          EXPECT_EQ(read, numbered(spec));
        }
      }
    }
  }
}

TEST(PublishedModelTest, TheNamesAreThoseOfTheClassWithItsHead) {
  FolderWriter folder("names");
  publish(folder.path(), *split_model(untied_model(gpt2_json()), 2), PublishedType::kBf16, {});
  const Json index = Json::parse(text_of_file(folder.file("model.safetensors.index.json")));
  const Json& map = index["weight_map"];
  EXPECT_EQ(map["transformer.wte.weight"], "model-00001-of-00002.safetensors");
  EXPECT_EQ(map["transformer.ln_f.bias"], "model-00002-of-00002.safetensors");
  EXPECT_EQ(map["lm_head.weight"], "model-00002-of-00002.safetensors");
  const std::uint64_t floats = parameter_count(split_model(untied_model(gpt2_json()), 1)->front());
  EXPECT_EQ(index["metadata"]["total_size"], 2 * floats);
}

TEST(PublishedModelTest, AModelWithABoundaryBringsItsClassAndIsNoPlainOne) {
  FolderWriter folder("narrow");
  publish(folder.path(), *split_model(narrow_model(gpt2_json(), 8), 2), PublishedType::kBf16,
          {.begin = 1, .ends = {2}});
  EXPECT_EQ(text_of_file(folder.file("modeling_boundary.py")),
            text_of_file(SHOAL_SOURCE_DIR "/stages/pretrained/modeling_boundary.py"));
  const Json config = Json::parse(text_of_file(folder.file("config.json")));
  EXPECT_EQ(config["model_type"], kBoundaryModelType);
  EXPECT_EQ(config["auto_map"]["AutoModelForCausalLM"], "modeling_boundary.BoundaryForCausalLM");
  EXPECT_FALSE(config.contains("n_layer")) << "a plain class would take it for its own";
  EXPECT_EQ(config["base"]["model_type"], "gpt2");
  EXPECT_EQ(config["torch_dtype"], "bfloat16");
  EXPECT_EQ(config["eos_token_id"], 2);
  const Json map = Json::parse(text_of_file(folder.file("model.safetensors.index.json")))["weight_map"];
  EXPECT_EQ(map["base.transformer.h.1.ln_1.bias"], "model-00002-of-00002.safetensors");
  EXPECT_EQ(map["base.lm_head.weight"], "model-00002-of-00002.safetensors");
  EXPECT_EQ(map["boundary.1.down"], "model-00001-of-00002.safetensors");
  EXPECT_EQ(map["boundary.1.places"], "model-00002-of-00002.safetensors");
}

TEST(PublishedModelTest, SaysTypeAndEndsOfATextWhereTheyAreKnown) {
  FolderWriter known("known"), unknown("unknown");
  const std::vector<StageSpec> specs = *split_model(untied_model(llama_json()), 1);
  publish(known.path(), specs, PublishedType::kBf16, {.begin = 1, .ends = {2}});
  publish(unknown.path(), specs, PublishedType::kFp32, {});
  const Json config = Json::parse(text_of_file(known.file("config.json")));
  EXPECT_EQ(config["dtype"], "bfloat16");
  EXPECT_EQ(config["torch_dtype"], "bfloat16");
  EXPECT_EQ(config["bos_token_id"], 1);
  EXPECT_EQ(config["eos_token_id"], 2);
  EXPECT_EQ(Json::parse(text_of_file(known.file("generation_config.json")))["eos_token_id"], 2);
  const Json other = Json::parse(text_of_file(unknown.file("config.json")));
  EXPECT_EQ(other["dtype"], "float32");
  EXPECT_TRUE(other["eos_token_id"].is_null());
  EXPECT_FALSE(Json::parse(text_of_file(unknown.file("generation_config.json"))).contains("eos_token_id"));
}

TEST(PublishedModelTest, AFolderWithAModelIsNotWrittenInto) {
  FolderWriter folder("taken");
  publish(folder.path(), *split_model(untied_model(llama_json()), 1), PublishedType::kFp32, {});
  const Status again = begin_published_model(folder.path());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.code(), ErrorCode::kOutput);
}

}  // namespace
}  // namespace shoal
