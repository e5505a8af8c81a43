// GPT-2's family (Radford et al. 2019): pre-LayerNorm, learned positions, tanh GELU, causal attention; the head is not
// tied to the embedding. Linear weights are (in, out), the head is (V, d).
#include <cmath>

#include "stages/json_text.h"
#include "stages/model_family.h"

namespace shoal {
namespace {

constexpr double kDeviation = 0.02;

std::int64_t inner_of(const ModelSpec& model) { return model.inner == 0 ? std::int64_t{4} * model.dim : model.inner; }

ParameterSpec table(std::string name, Shape shape) {
  return {.name = std::move(name), .shape = std::move(shape), .decays = true, .deviation = kDeviation};
}

void append_norm(std::vector<ParameterSpec>& list, const std::string& name, std::int64_t dim) {
  list.push_back({.name = name + ".weight", .shape = {dim}, .constant = 1});
  list.push_back({.name = name + ".bias", .shape = {dim}});
}

void append_linear(std::vector<ParameterSpec>& list, const std::string& name, std::int64_t in, std::int64_t out,
                   double deviation = kDeviation, std::uint32_t matrices = 1) {
  list.push_back(
      {.name = name + ".weight", .shape = {in, out}, .decays = true, .deviation = deviation, .matrices = matrices});
  list.push_back({.name = name + ".bias", .shape = {out}});
}

std::vector<ParameterSpec> embedding(const ModelSpec& model) {
  return {table("wte.weight", {model.vocabulary, model.dim}), table("wpe.weight", {model.context_length(), model.dim})};
}

std::vector<ParameterSpec> layer(const ModelSpec& model, std::uint32_t number) {
  const std::int64_t d = model.dim;
  const double into_residual = kDeviation / std::sqrt(2.0 * model.layers);  // of the two projections into it
  const std::string prefix = "h." + std::to_string(number) + ".";
  std::vector<ParameterSpec> list;
  append_norm(list, prefix + "ln_1", d);
  append_linear(list, prefix + "attn.c_attn", d, 3 * d, kDeviation, 3);
  append_linear(list, prefix + "attn.c_proj", d, d, into_residual);
  append_norm(list, prefix + "ln_2", d);
  append_linear(list, prefix + "mlp.c_fc", d, inner_of(model));
  append_linear(list, prefix + "mlp.c_proj", inner_of(model), d, into_residual);
  return list;
}

std::vector<ParameterSpec> head(const ModelSpec& model) {
  std::vector<ParameterSpec> list;
  append_norm(list, "ln_f", model.dim);
  list.push_back(table("lm_head.weight", {model.vocabulary, model.dim}));
  return list;
}

double embedding_cost(const ModelSpec& model) { return 2.0 * model.positions * model.dim; }

// Four d x d products of attention (the fused one counts as three), two of the MLP, 2 FLOPs a multiply-add;
// causal attention scores and their product with the values at half of 2 * 2 T T d.
double layer_cost(const ModelSpec& model) {
  const double d = model.dim, t = model.positions;
  return 8 * t * d * d + 4 * t * d * static_cast<double>(inner_of(model)) + 2 * t * t * d;
}

double head_cost(const ModelSpec& model) { return 2.0 * model.positions * model.dim * model.vocabulary; }

// Korthikanti et al. 2022, section 4.1, without the attention matrix: what both additions make; outputs of the norms,
// queries, keys, values, what they mix to; the MLP before and behind its GELU. Passing: the gradients before and behind
// that GELU, whose output waits for the gradient of a matrix.
LayerFloats layer_floats(const ModelSpec& model) {
  const auto inner = static_cast<std::uint64_t>(inner_of(model));
  return {.wide = 2ull * model.dim, .narrow = 6ull * model.dim + 2 * inner, .passing = 2 * inner + model.dim};
}

Status check(const ModelSpec& model) {
  const auto refuse = [](std::string text) {
    return Status(make_error(ErrorCode::kInput, "model: " + std::move(text)));
  };
  if (model.dim % model.heads != 0)
    return refuse("dim " + std::to_string(model.dim) + " is not a multiple of heads " + std::to_string(model.heads));
  if (model.key_heads() != model.heads || model.width_of_head() != model.dim / model.heads ||
      !model.rope_scaling.empty() || model.extras != AttentionExtras::kNone)
    return refuse("kv_heads, head_width, rope_scaling and attention are of family \"llama\", not of \"gpt2\"");
  return Status::success();
}

// What the loader would else take from GPT-2 itself, such as dropout, is named.
std::vector<std::pair<std::string_view, std::string>> architecture(const ModelSpec& model) {
  return {{"architectures", "[\"GPT2LMHeadModel\"]"},
          {"model_type", "\"gpt2\""},
          {"n_positions", std::to_string(model.context_length())},
          {"n_embd", std::to_string(model.dim)},
          {"n_layer", std::to_string(model.layers)},
          {"n_head", std::to_string(model.heads)},
          {"n_inner", std::to_string(inner_of(model))},
          {"activation_function", "\"gelu_pytorch_tanh\""},
          {"layer_norm_epsilon", json_number(model.norm_epsilon)},
          {"scale_attn_weights", "true"},
          {"scale_attn_by_inverse_layer_idx", "false"},
          {"reorder_and_upcast_attn", "false"},
          {"resid_pdrop", "0.0"},
          {"embd_pdrop", "0.0"},
          {"attn_pdrop", "0.0"}};
}

}  // namespace

constinit const FamilyRow kGpt2Family = {.name = "gpt2",
                                         .embedding = embedding,
                                         .layer = layer,
                                         .head = head,
                                         .embedding_cost = embedding_cost,
                                         .layer_cost = layer_cost,
                                         .head_cost = head_cost,
                                         .layer_floats = layer_floats,
                                         .check = check,
                                         .architecture = architecture,
                                         .input_first = true,
                                         .learns_places = true,
                                         .body_prefix = "transformer."};

}  // namespace shoal
