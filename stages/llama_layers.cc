// The layers of the llama family (stages/llama.cc).
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>

#include <cmath>

#include "common/check.h"
#include "stages/attention.h"
#include "stages/rotation.h"

namespace shoal {
namespace {

using Weights = std::span<const Weight>;

// Zhang and Sennrich 2019, equation 4.
at::Tensor norm(const ModelSpec& model, const at::Tensor& x, const at::Tensor& weight) {
  return at::rms_norm(x, {x.size(-1)}, weight, model.norm_epsilon);
}

// Takes the weights of a part one after the other, in the order of the family's row.
class Taker {
 public:
  explicit Taker(Weights weights) : left_(weights) {}
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;
  const Weight& first() const { return left_.front(); }
  const Weight& matrix() {
    const Weight& first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }
  const at::Tensor& next() { return *matrix(); }
  // Behind the last one, and not at the end of life: an operation that finds no memory throws in the middle.
  void end() const { SHOAL_CHECK(left_.empty()); }

 private:
  Weights left_;
};

// x (N, in) -> (N, out)
at::Tensor linear(const at::Tensor& x, const Weight& matrix, const Weight* bias = nullptr) {
  return linear(x, MatrixForm::kOutputFirst, matrix, bias);
}

// Su et al. 2021, equation 34, with the halves of a head as its pairs, as transformers lays them out.
// x (B, H, T, w) -> the same.
at::Tensor rotated(const at::Tensor& x, const TokenPlaces& places) {
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  const at::Tensor &cosines = places.rotation[0], &sines = places.rotation[1];
  return at::cat({halves[0].mul(cosines).sub(halves[1].mul(sines)), halves[1].mul(cosines).add(halves[0].mul(sines))},
                 -1);
}

TokenPlaces places(const ModelSpec& model, std::int64_t first, std::int64_t count, const at::TensorOptions& like) {
  const std::vector<double> frequencies = rotation_frequencies(model);
  const auto width = static_cast<std::int64_t>(frequencies.size());
  at::Tensor cosines = at::empty({count, width}, at::TensorOptions().dtype(at::kDouble));
  at::Tensor sines = at::empty_like(cosines);
  auto* cosine = static_cast<double*>(cosines.data_ptr());
  auto* sine = static_cast<double*>(sines.data_ptr());
  for (std::int64_t place = first; place < first + count; ++place) {
    for (const double frequency : frequencies) {
      *cosine++ = std::cos(static_cast<double>(place) * frequency);
      *sine++ = std::sin(static_cast<double>(place) * frequency);
    }
  }
  return {first, {cosines.to(like), sines.to(like)}};
}

// w: token table (V, d).
at::Tensor embed(const ModelSpec&, const at::Tensor& tokens, const TokenPlaces&, Weights w, LayerCache*) {
  SHOAL_CHECK_EQ(w.size(), 1u);
  return at::embedding(*w[0], tokens);
}

// x (B, T, d) -> (B * T, d)
at::Tensor attention(const ModelSpec& model, const at::Tensor& x, const TokenPlaces& places, Taker& w,
                     LayerCache* cache) {
  const std::int64_t b = x.size(0), t = x.size(1), width = model.width_of_head();
  const at::Tensor rows = as_factor(x.view({b * t, x.size(2)}), w.first());
  const auto projected = [&](std::int64_t heads) {
    const Weight& matrix = w.matrix();
    const bool biased = model.extras == AttentionExtras::kQkvBias;
    return linear(rows, matrix, biased ? &w.matrix() : nullptr).view({b, t, heads, width});
  };
  at::Tensor q = projected(model.heads), k = projected(model.key_heads());
  const at::Tensor v = projected(model.key_heads());
  if (model.extras == AttentionExtras::kQkNorm) {
    const auto normed = [&](const at::Tensor& one) {
      const at::Tensor& weight = w.next();
      return norm(model, one.to(weight.scalar_type()), weight);
    };
    q = normed(q);
    k = normed(k);
  }
  // Rotated in f32, as the places are; attention computes in the type of v.
  const auto turned = [&](const at::Tensor& one) { return rotated(one.transpose(1, 2), places).to(v.scalar_type()); };
  const at::Tensor mixed = causal_attention(turned(q), turned(k), v.transpose(1, 2), cache);
  return linear(mixed, w.matrix());
}

// Pre-norm:  x += attention(norm(x));  x += down(silu(gate(norm(x))) * up(norm(x))), Shazeer 2020's SwiGLU.
at::Tensor layer(const ModelSpec& model, const at::Tensor& x, const TokenPlaces& places, Weights weights,
                 LayerCache* cache) {
  Taker w(weights);
  const std::int64_t rows = x.size(0) * x.size(1), d = x.size(2);
  const at::Tensor attended = x.add(attention(model, norm(model, x, w.next()), places, w, cache).view_as(x));
  const at::Tensor& weight = w.next();
  const at::Tensor normed = as_factor(norm(model, attended, weight).view({rows, d}), w.first());
  const at::Tensor gate = at::silu(linear(normed, w.matrix()));
  const at::Tensor wide = gate.mul(linear(normed, w.matrix()));
  const Weight& down = w.matrix();
  w.end();
  return attended.add(linear(wide, down).view_as(x));
}

TorchModule module(const ModelSpec&, std::uint32_t part) { return part == 0 ? embed : layer; }

// w: weight of the norm, head (V, d).
at::Tensor final_norm(const ModelSpec& model, const at::Tensor& x, Weights w) {
  SHOAL_CHECK_EQ(w.size(), 2u);
  return norm(model, x, *w[0]).view({x.size(0) * x.size(1), x.size(2)});
}

}  // namespace

constinit const TorchFamily kLlamaLayers = {.places = places, .module = module, .final_norm = final_norm};

}  // namespace shoal
