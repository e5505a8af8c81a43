// The layers of GPT-2's family (stages/gpt2.cc).
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "common/check.h"
#include "stages/torch_family.h"

namespace shoal {
namespace {

using Weights = std::span<const at::Tensor>;

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, kGpt2Family.norm_epsilon);
}

// x (N, in) -> (N, out)
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::addmm(bias, x, weight);
}

// x (B, T, d) -> (B * T, d)
at::Tensor attention(const at::Tensor& x, Weights w, std::int64_t heads) {
  const std::int64_t b = x.size(0), t = x.size(1), d = x.size(2);
  const at::Tensor fused = linear(x.view({b * t, d}), w[0], w[1]).view({b, t, 3 * d});
  const auto split = [&](const at::Tensor& part) {
    return part.view({b, t, heads, d / heads}).transpose(1, 2);
  };  // (B, H, T, d / H)
  const std::vector<at::Tensor> parts = fused.chunk(3, 2);
  const at::Tensor mixed =
      at::scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]), {}, 0.0, true);
  return linear(mixed.transpose(1, 2).reshape({b * t, d}), w[2], w[3]);
}

// w: token table (V, d), position table (T, d).
at::Tensor embed(const ModelSpec&, const at::Tensor& tokens, Weights w) {
  SHOAL_CHECK_EQ(w.size(), 2u);
  return at::embedding(w[0], tokens).add(w[1]);
}

// Pre-norm:  x += attention(norm(x));  x += mlp(norm(x)).  w: weight and bias of ln_1, c_attn, c_proj, ln_2, c_fc,
// c_proj.
at::Tensor layer(const ModelSpec& model, const at::Tensor& x, Weights w) {
  SHOAL_CHECK_EQ(w.size(), 12u);
  const std::int64_t rows = x.size(0) * x.size(1), d = x.size(2);
  const at::Tensor attended = x.add(attention(norm(x, w[0], w[1]), w.subspan(2, 4), model.heads).view_as(x));
  const at::Tensor wide = at::gelu(linear(norm(attended, w[6], w[7]).view({rows, d}), w[8], w[9]), "tanh");
  return attended.add(linear(wide, w[10], w[11]).view_as(x));
}

// w: weight and bias of the norm, head (V, d).
at::Tensor logits(const ModelSpec&, const at::Tensor& x, Weights w) {
  SHOAL_CHECK_EQ(w.size(), 3u);
  return norm(x, w[0], w[1]).view({x.size(0) * x.size(1), x.size(2)}).matmul(w[2].t());
}

}  // namespace

constinit const TorchFamily kGpt2Layers = {.embed = embed, .layer = layer, .logits = logits};

}  // namespace shoal
