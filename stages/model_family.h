#pragma once
// Models, and the families that they belong to. A family's row says everything in which it differs from another, but
// for its layers as tensors (stages/torch_family.h): no other place asks for the name of a parameter. Pure; no torch.
// Thread: any.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/tensor_view.h"

namespace shoal {

enum class ModelFamily : std::uint8_t { kGpt2 = 0 };
inline constexpr std::string_view kFamilyNames[] = {"gpt2"};  // in RUN.toml and in saved models

struct ModelSpec {
  std::uint32_t layers = 0;
  std::uint32_t dim = 0;  // d; a multiple of heads
  std::uint32_t heads = 0;
  std::uint32_t positions = 0;   // T: tokens of one sequence
  std::uint32_t vocabulary = 0;  // V
  std::uint64_t seed = 0;        // of the initialisation
  ModelFamily family = ModelFamily::kGpt2;
  auto operator<=>(const ModelSpec&) const = default;
};

struct ParameterSpec {
  std::string name;            // as the family's class in Python's transformers calls it
  Shape shape;                 // as that class stores it
  std::size_t offset = 0;      // in floats, from the start of the stage's arena
  bool decays = false;         // weight decay applies (matrices and embeddings, not biases and norms)
  double deviation = 0;        // of its first values, which are normal around 0; 0: all are `constant`
  float constant = 0;          // its first value
  std::uint32_t matrices = 0;  // hidden matrices of equal width that lie side by side in it; 0: Muon does not step it
  std::uint32_t part = 0;      // 0: the embedding; 1 + l: layer l; 1 + layers: the head
};

struct FamilyRow {
  // The parameters of a part in the order of the arena; `offset` and `part` are filled in by parameters_of().
  std::vector<ParameterSpec> (*embedding)(const ModelSpec& model);
  std::vector<ParameterSpec> (*layer)(const ModelSpec& model, std::uint32_t layer);
  std::vector<ParameterSpec> (*head)(const ModelSpec& model);
  // FLOPs of a part's forward on one sequence, by which a split is balanced.
  double (*embedding_cost)(const ModelSpec& model);
  double (*layer_cost)(const ModelSpec& model);
  double (*head_cost)(const ModelSpec& model);
  // Floats that the graph of a part keeps of one token until its backward.
  std::uint64_t (*layer_kept)(const ModelSpec& model);
  std::uint64_t (*head_kept)(const ModelSpec& model);
  // The entries of config.json, from which Python's transformers takes the architecture: key, value as JSON.
  std::vector<std::pair<std::string_view, std::string>> (*architecture)(const ModelSpec& model);
  double norm_epsilon;
};

extern const FamilyRow kGpt2Family;

inline const FamilyRow& row_of(ModelFamily family) {
  static constexpr const FamilyRow* kRows[] = {&kGpt2Family};
  static_assert(std::size(kRows) == std::size(kFamilyNames));
  return *kRows[static_cast<std::size_t>(family)];
}

}  // namespace shoal
