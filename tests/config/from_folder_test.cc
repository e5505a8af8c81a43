// [model] from: a run whose model lies in a folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/config/config.h"
#include "stages/pretrained/model_config.h"
#include "tests/pretrained/folder_writer.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FromFolderTest : public ::testing::Test {
 protected:
  FromFolderTest() : folder_("from") { write_model(llama_json()); }

  void write_model(const Json& json) {
    const ModelSpec model = parse_pretrained_config(json.dump())->model;
    folder_.config(json);
    folder_.single(FolderWriter::tensors_of(model, StoredType::kBf16));
  }
  // The folder is named relative to the run file, which lies in it.
  Result<RunConfig> load(const std::string& model) {
    const std::string path = folder_.file("run.toml").string();
    write_text(path, "[model]\nfrom = \".\"\n" + model + "[data]\npath = \"text.bin\"\nwidth = \"u16\"\n");
    return load_config(path);
  }

  FolderWriter folder_;
};

TEST_F(FromFolderTest, TheFolderFillsInTheShapes) {
  const auto config = load("");
  ASSERT_TRUE(config.ok()) << config.error().message;
  ModelSpec expected = parse_pretrained_config(llama_json().dump())->model;
  expected.seed = config->run.seed;
  EXPECT_EQ(config->model_spec(), expected);
  EXPECT_TRUE(std::filesystem::equivalent(config->model.from, folder_.path()));
}

TEST_F(FromFolderTest, TheManifestHasTheShapesAndNotTheFolder) {
  const auto config = load("positions = 8\n");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto again = parse_manifest(*canonical_text(*config));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->model_spec(), config->model_spec());
  EXPECT_EQ(again->model.positions, 8u);
  EXPECT_EQ(again->model.context, 16u);
  EXPECT_EQ(again->model.from, "");
}

TEST_F(FromFolderTest, SequencesAreAtMost1024LongWhereNothingIsSaid) {
  Json json = llama_json();
  json["max_position_embeddings"] = 4096;
  write_model(json);
  EXPECT_EQ(load("")->model.positions, 1024u);
  EXPECT_EQ(load("positions = 2048\n")->model.positions, 2048u);
  EXPECT_FALSE(load("positions = 4097\n").ok());
}

TEST_F(FromFolderTest, AKeyBesideItAgreesOrIsRefusedByName) {
  EXPECT_TRUE(load("family = \"llama\"\nlayers = 2\ndim = 8\nvocabulary = 11\nkv_heads = 1\n").ok());
  for (const auto& [key, value, has] :
       {std::tuple("dim", "16", "8"), std::tuple("family", "\"gpt2\"", "\"llama\""), std::tuple("rope_theta", "5", "1"),
        std::tuple("vocabulary", "256", "11"), std::tuple("attention", "\"qk-norm\"", "\"none\"")}) {
    const auto config = load(std::string(key) + " = " + value + "\n");
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_EQ(config.code(), ErrorCode::kInput);
    EXPECT_THAT(config.error().message, HasSubstr("run.toml:3: [model] " + std::string(key) + " = " + value));
    EXPECT_THAT(config.error().message, HasSubstr(std::string("has ") + has));
  }
}

TEST_F(FromFolderTest, ANarrowBoundaryIsTheFoldersOwnOrNone) {
  EXPECT_THAT(load("boundary = 4\n").error().message,
              AllOf(HasSubstr("run.toml:3: [model] boundary = 4"), HasSubstr("has 0"), HasSubstr("`shoal fit`")));
  write_model({{"model_type", "shoal_boundary"},
               {"base", llama_json()},
               {"boundary", 3},
               {"boundary_table", 4},
               {"cuts", {1}}});
  for (const std::string given : {"", "boundary = 3\n", "boundary_table = 4\ncuts = [1]\n"}) {
    const auto config = load(given);
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->model_spec().boundary, 3u);
    EXPECT_EQ(config->model_spec().boundary_table, 4u);
    EXPECT_EQ(config->model.cuts, std::vector<std::uint32_t>{1});
    EXPECT_EQ(parse_manifest(*canonical_text(*config))->model_spec(), config->model_spec());
  }
  for (const std::string other : {"boundary = 0\n", "boundary = 2\n", "boundary_table = 8\n", "cuts = []\n"})
    EXPECT_THAT(load(other).error().message, HasSubstr("but the model of from")) << other;
  EXPECT_THAT(load("lora_rank = 2\n").error().message, HasSubstr("boundary = 3 beside lora_rank"));
}

TEST_F(FromFolderTest, AFolderThatCannotBeUsedIsNamedWithTheLine) {
  Json json = llama_json();
  json["hidden_act"] = "gelu";
  folder_.config(json);
  const auto config = load("");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(config.error().message, HasSubstr("run.toml:2: [model] from: "));
  EXPECT_THAT(config.error().message, HasSubstr("\"hidden_act\" = \"gelu\""));
}

TEST_F(FromFolderTest, TextAloneReadsNoFolder) {
  EXPECT_THAT(parse_config("[model]\nfrom = \".\"\n[data]\npath = \"t\"\n", "run.toml").error().message,
              HasSubstr("[model] layers is missing"));
}

}  // namespace
}  // namespace shoal
