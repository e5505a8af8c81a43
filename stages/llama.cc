// The llama family (Touvron et al. 2023): RMSNorm in front, rotary positions, grouped-query attention, SwiGLU, no
// biases but those of AttentionExtras; the head is not tied to the embedding. Linear weights and the head are (out,
// in).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "stages/json_text.h"
#include "stages/rotation.h"

namespace shoal {
namespace {

constexpr double kDeviation = 0.02;

// Touvron et al. 2023, section 2.2: two thirds of 4 d, for three matrices in place of two.
std::int64_t inner_of(const ModelSpec& model) { return model.inner == 0 ? (8 * model.dim + 2) / 3 : model.inner; }

std::int64_t query_width(const ModelSpec& model) { return std::int64_t{model.heads} * model.width_of_head(); }
std::int64_t key_width(const ModelSpec& model) { return std::int64_t{model.key_heads()} * model.width_of_head(); }

ParameterSpec matrix(std::string name, std::int64_t out, std::int64_t in, double deviation = kDeviation) {
  return {.name = std::move(name), .shape = {out, in}, .decays = true, .deviation = deviation, .matrices = 1};
}

ParameterSpec table(std::string name, const ModelSpec& model) {
  return {.name = std::move(name), .shape = {model.vocabulary, model.dim}, .decays = true, .deviation = kDeviation};
}

ParameterSpec norm(std::string name, std::int64_t width) {
  return {.name = std::move(name), .shape = {width}, .constant = 1};
}

std::vector<ParameterSpec> embedding(const ModelSpec& model) { return {table("model.embed_tokens.weight", model)}; }

std::vector<ParameterSpec> layer(const ModelSpec& model, std::uint32_t number) {
  const std::int64_t d = model.dim, queries = query_width(model), keys = key_width(model), inner = inner_of(model);
  const double into_residual = kDeviation / std::sqrt(2.0 * model.layers);  // of the two projections into it
  const std::string prefix = "model.layers." + std::to_string(number) + ".", attention = prefix + "self_attn.";
  std::vector<ParameterSpec> list{norm(prefix + "input_layernorm.weight", d)};
  for (const auto& [name, width] :
       {std::pair("q_proj", queries), std::pair("k_proj", keys), std::pair("v_proj", keys)}) {
    list.push_back(matrix(attention + name + ".weight", width, d));
    if (model.extras == AttentionExtras::kQkvBias)
      list.push_back({.name = attention + name + ".bias", .shape = {width}});
  }
  if (model.extras == AttentionExtras::kQkNorm) {
    list.push_back(norm(attention + "q_norm.weight", model.width_of_head()));
    list.push_back(norm(attention + "k_norm.weight", model.width_of_head()));
  }
  list.push_back(matrix(attention + "o_proj.weight", d, queries, into_residual));
  list.push_back(norm(prefix + "post_attention_layernorm.weight", d));
  list.push_back(matrix(prefix + "mlp.gate_proj.weight", inner, d));
  list.push_back(matrix(prefix + "mlp.up_proj.weight", inner, d));
  list.push_back(matrix(prefix + "mlp.down_proj.weight", d, inner, into_residual));
  return list;
}

std::vector<ParameterSpec> head(const ModelSpec& model) {
  return {norm("model.norm.weight", model.dim), table("lm_head.weight", model)};
}

double embedding_cost(const ModelSpec& model) { return 2.0 * model.positions * model.dim; }

// Queries, keys, values, output and the three matrices of the MLP, 2 FLOPs a multiply-add; causal attention scores and
// their product with the values at half of 2 * 2 T T times their width.
double layer_cost(const ModelSpec& model) {
  const double t = model.positions, d = model.dim, queries = static_cast<double>(query_width(model));
  const double weights =
      2 * d * queries + 2 * d * static_cast<double>(key_width(model)) + 3 * d * static_cast<double>(inner_of(model));
  return 2 * t * weights + 2 * t * t * queries;
}

double head_cost(const ModelSpec& model) { return 2.0 * model.positions * model.dim * model.vocabulary; }

// Wide: what both additions make, and both norms before their weights. Narrow: the norms' outputs; queries and keys as
// rotated, values, and what they mix to, twice, as heads and as rows; gate, its SiLU, up and their product. Norms of
// queries and keys keep their inputs, and what they make before their weights.
LayerFloats layer_floats(const ModelSpec& model) {
  const auto queries = static_cast<std::uint64_t>(query_width(model)),
             keys = static_cast<std::uint64_t>(key_width(model)), inner = static_cast<std::uint64_t>(inner_of(model));
  const std::uint64_t normed = model.extras == AttentionExtras::kQkNorm ? 2 * (queries + keys) : 0;
  return {.wide = 4ull * model.dim + normed,
          .narrow = 2ull * model.dim + 3 * queries + 2 * keys + 4 * inner,
          .passing = 3 * inner + model.dim};
}

Status check(const ModelSpec& model) {
  const auto refuse = [](std::string text) {
    return Status(make_error(ErrorCode::kInput, "model: " + std::move(text)));
  };
  if (model.heads % model.key_heads() != 0)
    return refuse("heads " + std::to_string(model.heads) + " is not a multiple of kv_heads " +
                  std::to_string(model.key_heads()));
  if (model.head_width == 0 && model.dim % model.heads != 0)
    return refuse("dim " + std::to_string(model.dim) + " is not a multiple of heads " + std::to_string(model.heads) +
                  ". HINT: change one of them, or give head_width");
  if (model.width_of_head() % 2 != 0)
    return refuse("heads of width " + std::to_string(model.width_of_head()) +
                  " cannot be rotated in pairs. HINT: give an even dim / heads, or an even head_width");
  if (const auto& scaling = model.rope_scaling; !scaling.empty()) {
    const bool sound =
        scaling.size() == 4 && scaling[0] >= 1 && scaling[1] > 0 && scaling[2] > scaling[1] && scaling[3] >= 1;
    if (!sound)
      return refuse(
          "rope_scaling is [factor >= 1, low_freq_factor > 0, high_freq_factor > low_freq_factor, original "
          "positions >= 1], or []");
  }
  return Status::success();
}

struct PythonClass {
  std::string_view architecture, model_type;
};

const PythonClass& class_of(AttentionExtras extras) {
  static constexpr PythonClass kClasses[] = {
      {"LlamaForCausalLM", "llama"}, {"Qwen2ForCausalLM", "qwen2"}, {"Qwen3ForCausalLM", "qwen3"}};
  return kClasses[static_cast<std::size_t>(extras)];
}

// Releases of transformers before 5 read rope_theta, rope_scaling and torch_dtype, those from 5 on rope_parameters and
// dtype.
std::vector<std::pair<std::string_view, std::string>> architecture(const ModelSpec& model) {
  const std::string theta = json_number(model.rope_theta);
  const auto scaling = [&](const std::string& first) {
    if (model.rope_scaling.empty()) return "{" + first + "\"rope_type\": \"default\"}";
    return "{" + first + "\"rope_type\": \"llama3\", \"factor\": " + json_number(model.rope_scaling[0]) +
           ", \"low_freq_factor\": " + json_number(model.rope_scaling[1]) +
           ", \"high_freq_factor\": " + json_number(model.rope_scaling[2]) +
           ", \"original_max_position_embeddings\": " + json_number(model.rope_scaling[3]) + "}";
  };
  const PythonClass& python = class_of(model.extras);
  return {{"architectures", "[" + json_string(python.architecture) + "]"},
          {"model_type", json_string(python.model_type)},
          {"dtype", "\"float32\""},
          {"max_position_embeddings", std::to_string(model.context_length())},
          {"hidden_size", std::to_string(model.dim)},
          {"intermediate_size", std::to_string(inner_of(model))},
          {"num_hidden_layers", std::to_string(model.layers)},
          {"num_attention_heads", std::to_string(model.heads)},
          {"num_key_value_heads", std::to_string(model.key_heads())},
          {"head_dim", std::to_string(model.width_of_head())},
          {"hidden_act", "\"silu\""},
          {"rms_norm_eps", json_number(model.norm_epsilon)},
          {"rope_theta", theta},
          {"rope_scaling", model.rope_scaling.empty() ? "null" : scaling("")},
          {"rope_parameters", scaling("\"rope_theta\": " + theta + ", ")},
          {"attention_bias", "false"},
          {"mlp_bias", "false"},
          {"attention_dropout", "0.0"},
          {"use_sliding_window", "false"}};
}

}  // namespace

constinit const FamilyRow kLlamaFamily = {.name = "llama",
                                          .embedding = embedding,
                                          .layer = layer,
                                          .head = head,
                                          .embedding_cost = embedding_cost,
                                          .layer_cost = layer_cost,
                                          .head_cost = head_cost,
                                          .layer_floats = layer_floats,
                                          .check = check,
                                          .architecture = architecture};

std::vector<double> rotation_frequencies(const ModelSpec& model) {
  const std::uint32_t width = model.width_of_head();
  std::vector<double> frequencies;
  for (std::uint32_t i = 0; i < width; i += 2) {
    double frequency = static_cast<float>(std::pow(model.rope_theta, -static_cast<double>(i) / width));
    if (!model.rope_scaling.empty()) {
      const double factor = model.rope_scaling[0], low = model.rope_scaling[1], high = model.rope_scaling[2];
      const double turns = model.rope_scaling[3] * frequency / (2 * std::numbers::pi);  // in the original context
      const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      frequency = static_cast<float>((1 - kept) * frequency / factor + kept * frequency);
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

}  // namespace shoal
