#include "stages/attention.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>

namespace shoal {
namespace {

// To both of the cache.
void append(LayerCache& cache, const at::Tensor& k, const at::Tensor& v) {
  if (cache.held.empty()) {
    cache.held = {k.contiguous(), v.contiguous()};  // and not a view of what it was cut from
  } else {
    cache.held = {at::cat({cache.held[0], k}, 2), at::cat({cache.held[1], v}, 2)};
  }
}

// (T, S + T): a token sees the S that were before and its own up to itself.
at::Tensor mask_behind(std::int64_t seen, std::int64_t count, const at::Tensor& like) {
  return at::ones({count, seen + count}, like.options().dtype(at::kBool)).tril(seen);
}

}  // namespace

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, LayerCache* cache) {
  const std::int64_t b = q.size(0), heads = q.size(1), t = q.size(2), width = q.size(3);
  at::Tensor keys = k, values = v;
  std::int64_t seen = 0;
  if (cache != nullptr) {
    append(*cache, k, v);
    keys = cache->held[0];
    values = cache->held[1];
    seen = keys.size(2) - t;
  }
  std::optional<at::Tensor> mask;
  if (seen > 0 && t > 1) mask = mask_behind(seen, t, q);
  const at::Tensor mixed =
      at::scaled_dot_product_attention(q, keys, values, mask, 0.0, seen == 0, std::nullopt, heads != k.size(1));
  return mixed.transpose(1, 2).reshape({b * t, heads * width});
}

}  // namespace shoal
