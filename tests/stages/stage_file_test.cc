#include "stages/stage_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "stages/safetensors.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

ModelSpec model_of() {
  return {.layers = 3, .dim = 8, .heads = 2, .positions = 4, .vocabulary = 16, .seed = 0xffffffffffffffffull};
}

class StageFileTest : public ::testing::Test {
 protected:
  StageFileTest() : specs(*split_model(model_of(), 3)) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory = (fs::path(::testing::TempDir()) / ("shoal_stage_file_" + std::string(test->name()))).string();
    fs::remove_all(directory);
    fs::create_directories(directory);
    for (const StageSpec& spec : specs) {
      parameters.emplace_back(parameter_count(spec));
      initialise(spec, parameters.back());
    }
  }
  ~StageFileTest() override { fs::remove_all(directory); }
  void save_all() {
    for (std::size_t k = 0; k < specs.size(); ++k) ASSERT_TRUE(save_stage(directory, specs[k], parameters[k]).ok());
    ASSERT_TRUE(save_index(directory, specs).ok());
  }
  std::string path_of(std::size_t k) const {
    return (fs::path(directory) / stage_file_name(specs[k].stage, 3)).string();
  }

  std::vector<StageSpec> specs;
  std::vector<std::vector<float>> parameters;
  std::string directory;
};

TEST_F(StageFileTest, AModelIsReadBackBitByBit) {
  save_all();
  const Result<std::vector<LoadedStage>> loaded = load_model(directory);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  ASSERT_EQ(loaded->size(), 3u);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_TRUE((*loaded)[k].spec == specs[k]);
    EXPECT_EQ((*loaded)[k].parameters, parameters[k]);
  }
  for (const auto& entry : fs::directory_iterator(directory))
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos);
}

TEST_F(StageFileTest, FilesHaveStandardNamesAndAnIndex) {
  save_all();
  EXPECT_EQ(stage_file_name(StageId(0), 3), "model-00001-of-00003.safetensors");
  const Bytes index_bytes = index_file(specs);
  const std::string index(reinterpret_cast<const char*>(index_bytes.data()), index_bytes.size());
  EXPECT_NE(index.find("\"wte.weight\":\"model-00001-of-00003.safetensors\""), std::string::npos) << index;
  EXPECT_NE(index.find("\"h.2.mlp.c_fc.bias\":\"model-00003-of-00003.safetensors\""), std::string::npos);
  std::size_t floats = 0;
  for (const auto& part : parameters) floats += part.size();
  EXPECT_NE(index.find("\"total_size\":" + std::to_string(4 * floats) + "}"), std::string::npos);
  EXPECT_TRUE(fs::exists(fs::path(directory) / kIndexFileName));
}

// GPT-2's own values of what is not named here are another model's.
TEST_F(StageFileTest, TheArchitectureIsNamedForOtherPrograms) {
  save_all();
  const Bytes bytes = architecture_file(model_of());
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text, R"({
  "architectures": ["GPT2LMHeadModel"],
  "model_type": "gpt2",
  "n_positions": 4,
  "n_embd": 8,
  "n_layer": 3,
  "n_head": 2,
  "n_inner": 32,
  "activation_function": "gelu_pytorch_tanh",
  "layer_norm_epsilon": 1e-05,
  "scale_attn_weights": true,
  "scale_attn_by_inverse_layer_idx": false,
  "reorder_and_upcast_attn": false,
  "resid_pdrop": 0.0,
  "embd_pdrop": 0.0,
  "attn_pdrop": 0.0,
  "torch_dtype": "float32",
  "vocab_size": 16,
  "tie_word_embeddings": false,
  "bos_token_id": null,
  "eos_token_id": null
}
)");
  std::ostringstream written;
  written << std::ifstream(fs::path(directory) / kArchitectureFileName).rdbuf();
  EXPECT_EQ(written.str(), text);
}

// Transformers would take it for the plain model that its config.json describes.
TEST_F(StageFileTest, AModelWithABoundaryHasNoArchitectureNorOneOfAnEarlierModel) {
  save_all();
  ASSERT_TRUE(fs::exists(fs::path(directory) / kArchitectureFileName));
  ModelSpec narrow = model_of();
  narrow.boundary = 4;
  narrow.cuts = {1, 2};
  EXPECT_FALSE(has_architecture(narrow));
  ASSERT_TRUE(save_index(directory, *split_model(narrow, 3)).ok());
  EXPECT_FALSE(fs::exists(fs::path(directory) / kArchitectureFileName));
  EXPECT_TRUE(save_index(directory, *split_model(narrow, 3)).ok()) << "nothing is there to be removed";
}

TEST_F(StageFileTest, RefusesAMissingOrForeignStage) {
  EXPECT_EQ(load_model(directory).code(), ErrorCode::kMissing) << "empty";
  EXPECT_EQ(load_model(directory + "/nowhere").code(), ErrorCode::kMissing);
  save_all();
  fs::remove(path_of(1));
  EXPECT_EQ(load_model(directory).code(), ErrorCode::kMalformed);
  fs::copy_file(path_of(0), path_of(1));
  EXPECT_EQ(load_model(directory).code(), ErrorCode::kMalformed) << "stage 0 twice";
}

TEST_F(StageFileTest, FilesOfAModelThatWasSplitOtherwiseAreLeftAlone) {
  save_all();
  const std::vector<StageSpec> halves = *split_model(model_of(), 2);
  for (const StageSpec& half : halves)
    ASSERT_TRUE(save_stage(directory, half, std::vector<float>(parameter_count(half), 0.5f)).ok());
  ASSERT_TRUE(save_index(directory, halves).ok());
  const Result<std::vector<LoadedStage>> loaded = load_model(directory);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  ASSERT_EQ(loaded->size(), 2u);
  EXPECT_TRUE((*loaded)[1].spec == halves[1]);
  EXPECT_EQ((*loaded)[1].parameters.front(), 0.5f);
}

TEST_F(StageFileTest, RefusesAnotherRunsStage) {
  save_all();
  ModelSpec other = model_of();
  other.seed = 1;
  ASSERT_TRUE(save_stage(directory, split_model(other, 3)->at(1), parameters[1]).ok());
  EXPECT_EQ(load_model(directory).code(), ErrorCode::kMalformed);
}

TEST_F(StageFileTest, RefusesTensorsThatDoNotFitTheMetadata) {
  std::vector<Bytes> parts = stage_file_parts(specs[1], parameters[1]);
  std::vector<std::uint8_t> all;
  for (const Bytes& part : parts) all.insert(all.end(), part.data(), part.data() + part.size());
  ASSERT_TRUE(parse_stage_file(Bytes::from_vector(all)).ok());
  const auto edited = [&](std::string_view from, std::string_view to) {
    EXPECT_EQ(from.size(), to.size());
    std::string text(all.begin(), all.end());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    text.replace(at, to.size(), to);
    const Result<LoadedStage> parsed = parse_stage_file(Bytes::copy_of(std::string_view(text)));
    return parsed.ok() ? ErrorCode::kTimeout : parsed.code();
  };
  EXPECT_EQ(edited("\"shoal.dim\":\"8\"", "\"shoal.dim\":\"6\""), ErrorCode::kMalformed);
  EXPECT_EQ(edited("\"shoal.dim\":\"8\"", "\"shoal.dim\":\"x\""), ErrorCode::kMalformed);
  EXPECT_EQ(edited("\"shoal.heads\":\"2\"", "\"shoal.heads\":\"3\""), ErrorCode::kMalformed);
  EXPECT_EQ(edited("\"shoal.stage\":\"1\"", "\"shoal.stage\":\"4\""), ErrorCode::kMalformed);
  EXPECT_EQ(edited("\"shoal.format\":\"1\"", "\"shoal.format\":\"2\""), ErrorCode::kUnsupported);
  EXPECT_EQ(edited("\"shoal.heads\"", "\"shoal.hEads\""), ErrorCode::kMalformed);
  EXPECT_EQ(edited("\"shoal.stage\":\"1\"", "\"shoal.family\":\"\""), ErrorCode::kUnsupported);
  EXPECT_EQ(edited("h.1.ln_1.weight", "h.7.ln_1.weight"), ErrorCode::kMalformed);
}

TEST_F(StageFileTest, MetadataAloneReservesNoMemory) {
  StringMap metadata{{"shoal.format", "1"},      {"shoal.layers", "4000"},   {"shoal.dim", "16777216"},
                     {"shoal.heads", "1"},       {"shoal.positions", "1"},   {"shoal.vocabulary", "16777216"},
                     {"shoal.seed", "0"},        {"shoal.stage", "0"},       {"shoal.stages", "1"},
                     {"shoal.first_layer", "0"}, {"shoal.end_layer", "4000"}};
  EXPECT_EQ(parse_stage_file(safetensors_parts(metadata, {}).front()).code(), ErrorCode::kMalformed);
}

TEST_F(StageFileTest, RefusesNonFiniteParameters) {
  parameters[2][5] = std::numeric_limits<float>::quiet_NaN();
  save_all();
  EXPECT_EQ(load_model(directory).code(), ErrorCode::kNonFinite);
}

TEST_F(StageFileTest, AFailedSaveNamesThePathAndLeavesTheOldFile) {
  save_all();
  const Status status = save_stage(directory + "/missing", specs[0], parameters[0]);
  EXPECT_EQ(status.code(), ErrorCode::kMissing);
  EXPECT_NE(status.error().message.find("missing"), std::string::npos);
  EXPECT_TRUE(load_model(directory).ok());
}

}  // namespace
}  // namespace shoal
