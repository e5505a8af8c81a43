#include "stages/pretrained/model_config.h"

#include <gtest/gtest.h>

#include "tests/pretrained/folder_writer.h"

namespace shoal {
namespace {

Result<PretrainedConfig> parsed(const Json& json) { return parse_pretrained_config(json.dump()); }

Json with(Json json, const std::string& key, const Json& value) {
  json[key] = value;
  return json;
}
Json without(Json json, const std::string& key) {
  json.erase(key);
  return json;
}

// The message names the key and its value.
void expect_refused(const Json& json, const std::string& key, const Json& value, ErrorCode code) {
  const auto result = parsed(with(json, key, value));
  ASSERT_FALSE(result.ok()) << key << " = " << value.dump();
  EXPECT_EQ(result.code(), code) << result.error().message;
  EXPECT_NE(result.error().message.find("\"" + key), std::string::npos) << result.error().message;
}

TEST(ModelConfigTest, ReadsTheShapesOfGpt2) {
  const auto config = parsed(gpt2_json());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->model,
            (ModelSpec{.layers = 2, .dim = 8, .heads = 2, .positions = 6, .vocabulary = 11, .context = 6}));
  EXPECT_TRUE(config->tied) << "GPT2Config's default";
}

TEST(ModelConfigTest, SaysThatItTrainsWithoutDropout) {
  const auto config = parsed(gpt2_json());
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config->notes.size(), 1u);
  EXPECT_NE(config->notes[0].find("attn_pdrop = 0.1, embd_pdrop = 0.1, resid_pdrop = 0.1"), std::string::npos);
  EXPECT_EQ(parsed(with(llama_json(), "attention_dropout", 0.25))->notes.size(), 1u);
  EXPECT_TRUE(parsed(with(llama_json(), "attention_dropout", 0.0))->notes.empty());
}

TEST(ModelConfigTest, NamesTheKeysThatItDoesNotKnow) {
  const auto config = parsed(with(with(llama_json(), "residual_multiplier", 2), "use_cache", true));
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config->notes.size(), 1u);
  EXPECT_NE(config->notes[0].find("\"residual_multiplier\""), std::string::npos);
  EXPECT_EQ(config->notes[0].find("use_cache"), std::string::npos);
}

TEST(ModelConfigTest, ReadsTheShapesOfLlamaLikes) {
  const auto llama = parsed(llama_json());
  ASSERT_TRUE(llama.ok()) << llama.error().message;
  const ModelSpec expected{.layers = 2,
                           .dim = 8,
                           .heads = 2,
                           .positions = 16,
                           .vocabulary = 11,
                           .family = ModelFamily::kLlama,
                           .context = 16,
                           .kv_heads = 1,
                           .inner = 12,
                           .norm_epsilon = 1e-6};
  EXPECT_EQ(llama->model, expected);
  EXPECT_FALSE(llama->tied);
  const Json mistral = with(with(llama_json(), "model_type", "mistral"), "sliding_window", nullptr);
  EXPECT_EQ(parsed(mistral)->model, expected);
  const auto qwen2 = parsed(with(llama_json(), "model_type", "qwen2"));
  ASSERT_TRUE(qwen2.ok()) << qwen2.error().message;
  EXPECT_EQ(qwen2->model.extras, AttentionExtras::kQkvBias);
  const auto qwen3 = parsed(with(with(llama_json(), "model_type", "qwen3"), "head_dim", 6));
  ASSERT_TRUE(qwen3.ok()) << qwen3.error().message;
  EXPECT_EQ(qwen3->model.extras, AttentionExtras::kQkNorm);
  EXPECT_EQ(qwen3->model.head_width, 6u);
}

TEST(ModelConfigTest, AKeyWhoseAbsenceMeansAnotherNumberMustBeThere) {
  const Json qwen3 = with(with(llama_json(), "model_type", "qwen3"), "head_dim", 6);
  EXPECT_EQ(parsed(without(qwen3, "head_dim")).code(), ErrorCode::kMissing) << "Qwen3Config takes 128";
  EXPECT_EQ(parsed(without(qwen3, "num_key_value_heads")).code(), ErrorCode::kMissing) << "and 32";
  EXPECT_EQ(parsed(without(llama_json(), "num_key_value_heads"))->model.key_heads(), 2u) << "Llama: as many as heads";
  for (const char* key : {"n_layer", "n_embd", "n_head", "n_positions", "vocab_size", "layer_norm_epsilon"}) {
    const auto result = parsed(without(gpt2_json(), key));
    ASSERT_FALSE(result.ok()) << key;
    EXPECT_EQ(result.code(), ErrorCode::kMissing);
    EXPECT_NE(result.error().message.find(key), std::string::npos);
  }
}

TEST(ModelConfigTest, ReadsTheScalingOfLlama3WhereBothReleasesOfTransformersWriteIt) {
  const Json scaling = {{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8}};
  const std::vector<double> expected{8, 1, 4, 8};
  const auto four = parsed(with(with(llama_json(), "rope_scaling", scaling), "rope_theta", 500000));
  ASSERT_TRUE(four.ok()) << four.error().message;
  EXPECT_EQ(four->model.rope_scaling, expected);
  EXPECT_EQ(four->model.rope_theta, 500000);
  const auto five =
      parsed(with(without(llama_json(), "rope_theta"), "rope_parameters", with(scaling, "rope_theta", 500000.0)));
  ASSERT_TRUE(five.ok()) << five.error().message;
  EXPECT_EQ(five->model, four->model);
  const Json both = with(with(with(llama_json(), "rope_scaling", scaling), "rope_theta", 500000), "rope_parameters",
                         with(scaling, "rope_theta", 500000.0));
  EXPECT_TRUE(parsed(both).ok());
  EXPECT_FALSE(parsed(with(both, "rope_theta", 10000)).ok()) << "they contradict each other";
  EXPECT_TRUE(parsed(with(llama_json(), "rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e4}})).ok());
}

TEST(ModelConfigTest, RefusesRotationsThatItDoesNotHave) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    for (const char* type : {"yarn", "linear", "dynamic", "longrope"})
      expect_refused(llama_json(), key, {{"rope_type", type}, {"factor", 2.0}}, ErrorCode::kUnsupported);
    expect_refused(llama_json(), key, {{"type", "linear"}, {"factor", 2.0}}, ErrorCode::kUnsupported);
    expect_refused(llama_json(), key, {{"rope_type", "default"}, {"mscale", 2.0}}, ErrorCode::kUnsupported);
    expect_refused(llama_json(), key, {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}},
                   ErrorCode::kUnsupported);
    expect_refused(llama_json(), key, 3, ErrorCode::kMalformed);
  }
  const auto lacking = parsed(with(llama_json(), "rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}));
  ASSERT_FALSE(lacking.ok());
  EXPECT_EQ(lacking.code(), ErrorCode::kMissing);
  expect_refused(llama_json(), "partial_rotary_factor", 0.5, ErrorCode::kUnsupported);
  expect_refused(llama_json(), "rope_theta", "many", ErrorCode::kMalformed);
}

// Sequences are as long as the window at most, and are then computed as without it.
TEST(ModelConfigTest, ASlidingWindowBoundsTheSequence) {
  const Json mistral = with(with(llama_json(), "model_type", "mistral"), "sliding_window", nullptr);
  const Json qwen = with(with(llama_json(), "model_type", "qwen2"), "sliding_window", 4);
  const Json on = with(with(qwen, "use_sliding_window", true), "max_window_layers", 1);
  const Json full = {"full_attention", "full_attention"}, mixed = {"full_attention", "sliding_attention"};
  const std::vector<std::pair<Json, std::uint32_t>> longest = {
      {mistral, 16},
      {with(mistral, "sliding_window", 15), 15},
      {with(mistral, "sliding_window", 16), 16},
      {with(without(mistral, "sliding_window"), "max_position_embeddings", 8192), 4096},  // MistralConfig's default
      {with(mistral, "max_position_embeddings", 8192), 8192},
      {qwen, 16},
      {with(qwen, "use_sliding_window", false), 16},
      {on, 4},
      {with(on, "sliding_window", nullptr), 16},
      {with(on, "max_window_layers", 2), 16},  // of two layers none slides
      {without(on, "max_window_layers"), 16},  // nor of the 28 that Qwen2Config takes for full ones
      {with(on, "layer_types", full), 16},
      {with(with(on, "max_window_layers", 28), "layer_types", mixed), 4},
  };
  for (const auto& [json, positions] : longest) {
    const auto config = parsed(json);
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->model.context, positions) << json.dump();
    EXPECT_EQ(config->model.positions, positions) << json.dump();
    EXPECT_EQ(config->notes.empty(), positions >= json["max_position_embeddings"]) << json.dump();
  }
  expect_refused(qwen, "layer_types", mixed, ErrorCode::kUnsupported);
  expect_refused(qwen, "layer_types", {"chunked_attention"}, ErrorCode::kUnsupported);
  expect_refused(on, "use_sliding_window", 1, ErrorCode::kMalformed);
  expect_refused(mistral, "sliding_window", 0, ErrorCode::kMalformed);
}

// As transformers writes what it does not know: every key that may be absent may be null, also within others.
TEST(ModelConfigTest, NullIsNotGiven) {
  for (const std::string key : {"num_key_value_heads", "head_dim", "attention_bias", "rope_parameters", "rope_scaling",
                                "layer_types", "quantization_config", "attention_dropout", "sliding_window",
                                "eos_token_id", "pad_token_id", "pretraining_tp", "nobody_knows_it"}) {
    const auto given = parsed(with(llama_json(), key, nullptr)), absent = parsed(without(llama_json(), key));
    ASSERT_TRUE(given.ok()) << key << ": " << given.error().message;
    EXPECT_EQ(given->model, absent->model) << key;
    EXPECT_EQ(given->notes, absent->notes) << key;
  }
  const Json rope = {{"rope_type", "default"}, {"rope_theta", 5e5}};
  const ModelSpec plain = parsed(with(llama_json(), "rope_parameters", rope))->model;
  for (const std::string key : {"factor", "attention_factor", "beta_fast", "mscale", "partial_rotary_factor", "type",
                                "original_max_position_embeddings", "nobody_knows_it"}) {
    const auto given = parsed(with(llama_json(), "rope_parameters", with(rope, key, nullptr)));
    ASSERT_TRUE(given.ok()) << key << ": " << given.error().message;
    EXPECT_EQ(given->model, plain) << key;
  }
}

TEST(ModelConfigTest, RefusesWhatItDoesNotComputeByNameAndValue) {
  const Json llama = llama_json(), gpt2 = gpt2_json();
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"hidden_act", "gelu"},
                                                 {"attention_bias", true},
                                                 {"mlp_bias", true},
                                                 {"num_experts", 8},
                                                 {"num_local_experts", 8},
                                                 {"n_routed_experts", 4},
                                                 {"moe_intermediate_size", 16},
                                                 {"rope_interleaved", true},
                                                 {"use_mrope", true},
                                                 {"quantization_config", {{"bits", 4}}},
                                                 {"auto_map", {{"AutoModel", "code.Model"}}}})
    expect_refused(llama, key, value, ErrorCode::kUnsupported);
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{{"activation_function", "relu"},
                                                                            {"scale_attn_by_inverse_layer_idx", true},
                                                                            {"reorder_and_upcast_attn", true},
                                                                            {"add_cross_attention", true},
                                                                            {"scale_attn_weights", false},
                                                                            {"pruned_heads", {{"0", {1}}}},
                                                                            {"quantization_config", {{"bits", 8}}}})
    expect_refused(gpt2, key, value, ErrorCode::kUnsupported);
  const auto unknown = parsed(with(llama, "model_type", "mixtral"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("\"model_type\" = \"mixtral\""), std::string::npos);
  EXPECT_NE(unknown.error().message.find("gpt2, llama, mistral, qwen2, qwen3"), std::string::npos);
}

TEST(ModelConfigTest, ReadsABoundaryAroundAPlainModel) {
  const Json narrow = {{"model_type", "shoal_boundary"},
                       {"base", llama_json()},
                       {"boundary", 3},
                       {"boundary_table", 4},
                       {"cuts", {1}},
                       {"auto_map", {{"AutoConfig", "modeling_boundary.BoundaryConfig"}}}};
  const auto config = parsed(narrow);
  ASSERT_TRUE(config.ok()) << config.error().message;
  ModelSpec expected = parsed(llama_json())->model;
  expected.boundary = 3;
  expected.boundary_table = 4;
  expected.cuts = {1};
  EXPECT_EQ(config->model, expected);
  for (const auto& [key, value, code] :
       {std::tuple("base", Json(), ErrorCode::kMissing), std::tuple("base", Json(5), ErrorCode::kMalformed),
        std::tuple("base", narrow, ErrorCode::kUnsupported), std::tuple("boundary", Json(), ErrorCode::kMissing),
        std::tuple("boundary", Json(0), ErrorCode::kMalformed),
        std::tuple("boundary", Json(2.5), ErrorCode::kMalformed),
        std::tuple("boundary_table", Json("auto"), ErrorCode::kMalformed),
        std::tuple("cuts", Json(), ErrorCode::kMalformed), std::tuple("cuts", Json(1), ErrorCode::kMalformed),
        std::tuple("cuts", Json({0}), ErrorCode::kMalformed), std::tuple("cuts", Json({1.5}), ErrorCode::kMalformed),
        std::tuple("cuts", Json({1, 1, 1}), ErrorCode::kMalformed),
        std::tuple("quantization_config", Json::object(), ErrorCode::kUnsupported)}) {
    const auto result = parsed(with(narrow, key, value));
    ASSERT_FALSE(result.ok()) << key << " = " << value.dump();
    EXPECT_EQ(result.code(), code) << result.error().message;
  }
  for (const auto& [key, value] : {std::pair("boundary", Json(8)), std::pair("boundary_table", Json(9)),
                                   std::pair("cuts", Json({1, 1})), std::pair("cuts", Json::array())}) {
    const auto result = parsed(with(narrow, key, value));
    ASSERT_FALSE(result.ok()) << key << " = " << value.dump();
    EXPECT_EQ(result.code(), ErrorCode::kInput) << result.error().message;
    EXPECT_NE(result.error().message.find("config.json: model: "), std::string::npos) << result.error().message;
  }
}

TEST(ModelConfigTest, RefusesValuesThatAreNoShapes) {
  for (const Json& value : {Json(0), Json(-1), Json(1.5), Json("8"), Json(1ull << 40), Json::array()})
    expect_refused(llama_json(), "hidden_size", value, ErrorCode::kMalformed);
  EXPECT_EQ(parsed(with(llama_json(), "hidden_size", 7)).code(), ErrorCode::kInput) << "no multiple of the heads";
  expect_refused(llama_json(), "tie_word_embeddings", 1, ErrorCode::kMalformed);
  for (const char* text : {"", "[]", "{", "null", "{\"model_type\": 3}", "\xff"})
    EXPECT_FALSE(parse_pretrained_config(text).ok()) << text;
  EXPECT_EQ(parse_pretrained_config(std::string(kModelConfigBytesMax + 1, ' ')).code(), ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace shoal
