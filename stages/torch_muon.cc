#include "stages/torch_muon.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

#include "stages/muon.h"

namespace shoal {
namespace {

// A new tensor.
at::Tensor orthogonalised(const at::Tensor& matrix) {
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = tall ? matrix.t() : matrix;
  x = x.div(x.norm().add(kNewtonSchulzFloor));
  for (int step = 0; step < kNewtonSchulzSteps; ++step) {
    const at::Tensor gram = x.mm(x.t());
    const at::Tensor factor = gram.mul(kNewtonSchulz[1]).add_(gram.mm(gram), kNewtonSchulz[2]);
    x = x.mul(kNewtonSchulz[0]).add_(factor.mm(x));
  }
  return tall ? x.t() : x;
}

// The parameter's part of a flat array, as (rows, cols).
at::Tensor part_of(const at::Tensor& flat, const ParameterSpec& parameter) {
  return flat.narrow(0, static_cast<std::int64_t>(parameter.offset), element_count(parameter.shape))
      .view({parameter.shape[0], parameter.shape[1]});
}

}  // namespace

void muon_by_tensors(TorchArena& arena, ArenaRole accumulator, const ParameterSpec& parameter, const AdamWFactors& f,
                     const at::Tensor* shift) {
  const at::Tensor gradient = part_of(arena.flat(accumulator), parameter).mul(f.gradient_scale);
  at::Tensor moment = part_of(arena.flat(ArenaRole::kMoment1), parameter);
  at::Tensor before = part_of(arena.flat(ArenaRole::kMoment2), parameter);
  moment.mul_(f.beta1).add_(gradient, 1 - f.beta1);
  const at::Tensor mixed = moment.mul(f.beta1).add_(gradient, 1 - f.beta1);
  const at::Tensor update = at::empty_like(before);
  const auto matrices = static_cast<std::int64_t>(parameter.matrices);
  const std::int64_t cols = parameter.shape[1] / matrices;
  for (std::int64_t matrix = 0; matrix < matrices; ++matrix)
    update.narrow(1, matrix * cols, cols).copy_(orthogonalised(mixed.narrow(1, matrix * cols, cols)));
  const float scale = muon_scale(static_cast<std::size_t>(parameter.shape[0]), static_cast<std::size_t>(cols));
  at::Tensor other = part_of(arena.flat(ArenaRole::kOther), parameter);
  other.copy_(part_of(arena.flat(ArenaRole::kCurrent), parameter)).mul_(parameter.decays ? f.keep : 1.0f);
  other.add_(update, -scale * f.matrix_rate).add_(before, scale * f.matrix_rate_before);
  if (shift != nullptr) other.add_(part_of(*shift, parameter));
  before.copy_(update);
}

}  // namespace shoal
