#pragma once
// The layers of each family as functions over tensors: differentiable, without state, any device and floating type.
// Shapes: B sequences, T positions, d dim, V vocabulary. `weights` are the part's, in the order of the family's row
// (stages/model_family.h). Thread: any; exceptions of the tensor library pass through (torch_executor.cc stops them).
#include <span>

#include "stages/model_family.h"

namespace at {
class Tensor;
}

namespace shoal {

struct TorchFamily {
  // (B, T) int64 tokens -> (B, T, d).
  at::Tensor (*embed)(const ModelSpec& model, const at::Tensor& tokens, std::span<const at::Tensor> weights);
  // One layer, (B, T, d) -> (B, T, d).
  at::Tensor (*layer)(const ModelSpec& model, const at::Tensor& x, std::span<const at::Tensor> weights);
  // Final norm and head, (B, T, d) -> logits (B * T, V).
  at::Tensor (*logits)(const ModelSpec& model, const at::Tensor& x, std::span<const at::Tensor> weights);
};

extern const TorchFamily kGpt2Layers;

inline const TorchFamily& layers_of(ModelFamily family) {
  static constexpr const TorchFamily* kRows[] = {&kGpt2Layers};
  static_assert(std::size(kRows) == std::size(kFamilyNames));
  return *kRows[static_cast<std::size_t>(family)];
}

}  // namespace shoal
