#include "stages/torch_weights.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>

#include <algorithm>

#include "stages/torch_arena.h"

namespace shoal {

std::vector<Weight> plain_weights(std::span<const at::Tensor> values) {
  std::vector<Weight> weights;
  for (const at::Tensor& one : values) weights.push_back({.values = &one, .product = &one});
  return weights;
}

at::Tensor as_factor(const at::Tensor& x, const Weight& matrix) { return x.to(matrix.product->scalar_type()); }

at::Tensor with_adapter(const at::Tensor& made, const at::Tensor& x, const Weight& matrix) {
  if (matrix.down == nullptr) return made;
  return at::addmm(made, x.mm(matrix.down->t()), matrix.up->t(), 1, matrix.scale);
}

StageWeights::StageWeights(const StageSpec& spec, ComputeType compute)
    : adapted_(has_adapters(spec.model)),
      narrow_(compute == ComputeType::kBf16),
      scale_(adapted_ ? static_cast<float>(adapter_scale(spec.model)) : 0),
      parameters_(parameters_of(base_of(spec))),
      adapters_(adapted_ ? adapter_places(spec) : std::vector<std::optional<AdapterPlaces>>(parameters_.size())) {}

std::vector<Weight> StageWeights::of_part(TorchArena& arena, ArenaRole trained, std::uint32_t part) const {
  const ArenaRole of_values = adapted_ ? ArenaRole::kBase : trained;
  const auto factors = [&](ArenaRole role) { return narrow_ ? arena.narrow_leaves(role) : arena.leaves(role); };
  const std::span<const at::Tensor> values = arena.leaves(of_values), products = factors(of_values);
  const std::span<const at::Tensor> adapters = adapted_ ? factors(trained) : std::span<const at::Tensor>();
  const auto found = std::ranges::equal_range(parameters_, part, {}, &ParameterSpec::part);
  std::vector<Weight> weights;
  for (auto parameter = found.begin(); parameter != found.end(); ++parameter) {
    const auto place = static_cast<std::size_t>(parameter - parameters_.begin());
    Weight& weight = weights.emplace_back(Weight{.values = &values[place], .product = &products[place]});
    if (const auto& adapter = adapters_[place]) {
      weight.down = &adapters[adapter->down];
      weight.up = &adapters[adapter->up];
      weight.scale = scale_;
    }
  }
  return weights;
}

}  // namespace shoal
