#include "stages/layers.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "common/check.h"
#include "stages/stage_spec.h"

namespace shoal {
namespace {

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, kNormEpsilon);
}

// x (N, in) -> (N, out)
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::addmm(bias, x, weight);
}

// x (B, T, d) -> (B * T, d)
at::Tensor attention(const at::Tensor& x, std::span<const at::Tensor> w, std::int64_t heads) {
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

}  // namespace

at::Tensor embed(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table) {
  return at::embedding(token_table, tokens).add(position_table);
}

at::Tensor decoder_layer(const at::Tensor& x, std::span<const at::Tensor> w, std::int64_t heads) {
  SHOAL_CHECK_EQ(w.size(), kTensorsPerLayer);
  const std::int64_t rows = x.size(0) * x.size(1), d = x.size(2);
  const at::Tensor attended = x.add(attention(norm(x, w[0], w[1]), w.subspan(2, 4), heads).view_as(x));
  const at::Tensor wide = at::gelu(linear(norm(attended, w[6], w[7]).view({rows, d}), w[8], w[9]), "tanh");
  return attended.add(linear(wide, w[10], w[11]).view_as(x));
}

at::Tensor head_logits(const at::Tensor& x, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
                       const at::Tensor& head) {
  const at::Tensor normed = norm(x, norm_weight, norm_bias);
  return normed.view({x.size(0) * x.size(1), x.size(2)}).matmul(head.t());
}

at::Tensor target_losses(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::None);
}

}  // namespace shoal
