#include "stages/torch_weights.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>

#include <algorithm>

#include "stages/torch_arena.h"

namespace shoal {

std::vector<Weight> plain_weights(std::span<const at::Tensor> values) {
  std::vector<Weight> weights;
  for (const at::Tensor& one : values) weights.push_back({.values = &one, .product = &one});
  return weights;
}

at::Tensor as_factor(const at::Tensor& x, const Weight& matrix) { return x.to(matrix.product->scalar_type()); }

namespace {

// `made` = x M: the gradient of M.
LateGradients::Make of_matrix(MatrixForm form, const at::Tensor& x) {
  if (form == MatrixForm::kInputFirst) return [x = x.detach()](const at::Tensor& g) { return x.t().mm(g); };
  return [x = x.detach()](const at::Tensor& g) { return g.t().mm(x); };
}

// x (N, in), and what the matrix made of it, (N, out).
at::Tensor with_adapter(const at::Tensor& made, const at::Tensor& x, const Weight& matrix) {
  if (matrix.down == nullptr) return made;
  const at::Tensor between = x.mm(matrix.down->t());
  const at::Tensor adapted = at::addmm(made, between, matrix.up->t(), 1, matrix.scale);
  if (matrix.late == nullptr) return adapted;
  matrix.late->add(between, matrix.adapter.down, of_matrix(MatrixForm::kOutputFirst, x));
  matrix.late->add(adapted, matrix.adapter.up, [x = between.detach(), scale = matrix.scale](const at::Tensor& g) {
    return g.t().mm(x).mul(scale);
  });
  return adapted;
}

}  // namespace

at::Tensor linear(const at::Tensor& x, MatrixForm form, const Weight& matrix, const Weight* bias) {
  const at::Tensor factor = as_factor(x, matrix);
  at::Tensor added;
  if (bias != nullptr) added = (**bias).to(factor.scalar_type());
  const at::Tensor made = form == MatrixForm::kOutputFirst ? at::linear(factor, *matrix.product, added)
                          : bias == nullptr                ? factor.mm(*matrix.product)
                                                           : at::addmm(added, factor, *matrix.product);
  if (matrix.late != nullptr) {
    if (matrix.place) matrix.late->add(made, *matrix.place, of_matrix(form, factor));
    if (bias != nullptr && bias->place)
      matrix.late->add(made, *bias->place, [](const at::Tensor& g) { return g.sum(0); });
  }
  return with_adapter(made, factor, matrix);
}

StageWeights::StageWeights(const StageSpec& spec, ComputeType compute)
    : adapted_(has_adapters(spec.model)),
      narrow_(compute == ComputeType::kBf16),
      scale_(adapted_ ? static_cast<float>(adapter_scale(spec.model)) : 0),
      parameters_(parameters_of(base_of(spec))),
      adapters_(adapted_ ? adapter_places(spec) : std::vector<std::optional<AdapterPlaces>>(parameters_.size())) {}

std::vector<Weight> StageWeights::of_part(TorchArena& arena, ArenaRole trained, std::uint32_t part,
                                          LateGradients* late) const {
  const ArenaRole of_values = adapted_ ? ArenaRole::kBase : trained;
  const auto factors = [&](ArenaRole role) { return narrow_ ? arena.narrow_leaves(role) : arena.leaves(role); };
  const std::span<const at::Tensor> values = arena.leaves(of_values), products = factors(of_values);
  const std::span<const at::Tensor> adapters = adapted_ ? factors(trained) : std::span<const at::Tensor>();
  const auto found = std::ranges::equal_range(parameters_, part, {}, &ParameterSpec::part);
  std::vector<Weight> weights;
  for (auto parameter = found.begin(); parameter != found.end(); ++parameter) {
    const auto place = static_cast<std::size_t>(parameter - parameters_.begin());
    Weight& weight = weights.emplace_back(Weight{.values = &values[place], .product = &products[place], .late = late});
    if (!adapted_) weight.place = place;
    if (const auto& adapter = adapters_[place]) {
      weight.down = &adapters[adapter->down];
      weight.up = &adapters[adapter->up];
      weight.scale = scale_;
      weight.adapter = *adapter;
    }
  }
  return weights;
}

}  // namespace shoal
