// The layers of GPT-2's family (stages/gpt2.cc).
#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>

#include "common/check.h"
#include "stages/attention.h"

namespace shoal {
namespace {

using Weights = std::span<const Weight>;

at::Tensor norm(const ModelSpec& model, const at::Tensor& x, Weights w) {
  return at::layer_norm(x, {x.size(-1)}, *w[0], *w[1], model.norm_epsilon);
}

// x (N, in) -> (N, out)
at::Tensor linear(const at::Tensor& x, Weights w) { return linear(x, MatrixForm::kInputFirst, w[0], &w[1]); }

// x (B, T, d) -> (B * T, d)
at::Tensor attention(const at::Tensor& x, Weights w, std::int64_t heads, LayerCache* cache) {
  const std::int64_t b = x.size(0), t = x.size(1), d = x.size(2);
  const at::Tensor fused = linear(x.view({b * t, d}), w.first(2)).view({b, t, 3 * d});
  const auto split = [&](const at::Tensor& part) {
    return part.view({b, t, heads, d / heads}).transpose(1, 2);
  };  // (B, H, T, d / H)
  const std::vector<at::Tensor> parts = fused.chunk(3, 2);
  return linear(causal_attention(split(parts[0]), split(parts[1]), split(parts[2]), cache), w.subspan(2));
}

TokenPlaces places(const ModelSpec&, std::int64_t first, std::int64_t, const at::TensorOptions&) { return {first, {}}; }

// w: token table (V, d), position table (context, d).
at::Tensor embed(const ModelSpec&, const at::Tensor& tokens, const TokenPlaces& at, Weights w, LayerCache*) {
  SHOAL_CHECK_EQ(w.size(), 2u);
  return at::embedding(*w[0], tokens).add((*w[1]).narrow(0, at.first, tokens.size(1)));
}

// Pre-norm:  x += attention(norm(x));  x += mlp(norm(x)).  w: weight and bias of ln_1, c_attn, c_proj, ln_2, c_fc,
// c_proj.
at::Tensor layer(const ModelSpec& model, const at::Tensor& x, const TokenPlaces&, Weights w, LayerCache* cache) {
  SHOAL_CHECK_EQ(w.size(), 12u);
  const std::int64_t rows = x.size(0) * x.size(1), d = x.size(2);
  const at::Tensor attended =
      x.add(attention(norm(model, x, w.first(2)), w.subspan(2, 4), model.heads, cache).view_as(x));
  const at::Tensor normed = norm(model, attended, w.subspan(6, 2)).view({rows, d});
  const at::Tensor wide = at::gelu(linear(normed, w.subspan(8, 2)), "tanh");
  return attended.add(linear(wide, w.subspan(10)).view_as(x));
}

TorchModule module(const ModelSpec&, std::uint32_t part) { return part == 0 ? embed : layer; }

// w: weight and bias of the norm, head (V, d).
at::Tensor final_norm(const ModelSpec& model, const at::Tensor& x, Weights w) {
  SHOAL_CHECK_EQ(w.size(), 3u);
  return norm(model, x, w).view({x.size(0) * x.size(1), x.size(2)});
}

}  // namespace

constinit const TorchFamily kGpt2Layers = {.places = places, .module = module, .final_norm = final_norm};

}  // namespace shoal
