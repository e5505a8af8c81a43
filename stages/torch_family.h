#pragma once
// The parts of each family's models as functions over tensors: differentiable, without state, any device and floating
// type. An executor runs any chain of them. Shapes: B sequences, T positions, d dim, V vocabulary. `weights` are the
// part's, in the order of the family's row (stages/model_family.h). Thread: any; exceptions of the tensor library pass
// through (torch_executor.cc stops them).
#include <span>
#include <vector>

#include "stages/torch_weights.h"

namespace at {
class Tensor;
}
namespace c10 {
struct TensorOptions;
}

namespace shoal {

// Where a pass's tokens stand in their sequences; made once, read by every layer.
struct TokenPlaces {
  std::int64_t first = 0;              // place of the first one
  std::vector<at::Tensor> rotation{};  // llama: cosines and sines of each place, (T, width of a head / 2) both
};

// Keys and values of the tokens that a layer has seen, (B, heads of keys, places, width of a head) both; nothing before
// the first. A pass appends its own.
struct LayerCache {
  std::vector<at::Tensor> held{};
};

// What a part makes of x, (B, T, d) -> (B, T, d); the first, part 0, of tokens (B, T) int64. `cache`: null in training;
// else the tokens also attend to those that it holds.
using TorchModule = at::Tensor (*)(const ModelSpec& model, const at::Tensor& x, const TokenPlaces& places,
                                   std::span<const Weight> weights, LayerCache* cache);

struct TorchFamily {
  // Those of the tokens [first, first + count), in the floating type and on the device of `like`.
  TokenPlaces (*places)(const ModelSpec& model, std::int64_t first, std::int64_t count, const c10::TensorOptions& like);
  // That of a part (ParameterSpec::part), but the head's. Parts may be as unlike as they like.
  TorchModule (*module)(const ModelSpec& model, std::uint32_t part);
  // The norm in front of the head, (B, T, d) -> (B * T, d). The head itself, (V, d), is the last of `weights`.
  at::Tensor (*final_norm)(const ModelSpec& model, const at::Tensor& x, std::span<const Weight> weights);
};

extern const TorchFamily kGpt2Layers, kLlamaLayers;

// A family's row and what computes it, in one; as register_family(row).
ModelFamily register_family(const FamilyRow& row, const TorchFamily& layers);
const TorchFamily& layers_of(ModelFamily family);

}  // namespace shoal
