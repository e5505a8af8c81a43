#pragma once
// What one stage of the model is: which layers, which parameters, where each lies in the flat arena. Pure; no torch.
// The model: a GPT-2-style decoder (Radford et al. 2019): pre-LayerNorm, learned positions, tanh GELU, causal
// attention, untied head.
#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/tensor_view.h"

namespace shoal {

struct ModelSpec {
  std::uint32_t layers = 0;
  std::uint32_t dim = 0;  // d; a multiple of heads
  std::uint32_t heads = 0;
  std::uint32_t positions = 0;   // T: tokens of one sequence
  std::uint32_t vocabulary = 0;  // V
  std::uint64_t seed = 0;        // of the initialisation
  auto operator<=>(const ModelSpec&) const = default;
};

inline constexpr double kNormEpsilon = 1e-5;   // of every LayerNorm
inline constexpr std::uint32_t kWidening = 4;  // the inner width of an MLP is so many times dim

struct StageSpec {
  ModelSpec model;
  StageId stage;
  std::uint16_t stages = 1;
  std::uint32_t first_layer = 0;  // layers [first_layer, end_layer)
  std::uint32_t end_layer = 0;
  bool is_first() const { return stage.value == 0; }          // owns token and position embedding
  bool is_last() const { return stage.value + 1 == stages; }  // owns final norm, head and loss
  auto operator<=>(const StageSpec&) const = default;
};

struct ParameterSpec {
  std::string name;    // GPT-2's names: "wte.weight", "h.3.attn.c_attn.weight", "ln_f.bias", "lm_head.weight", ...
  Shape shape;         // as GPT-2 stores it: linear weights are (in, out), the head is (V, d)
  std::size_t offset;  // in floats, from the start of the arena
  bool decays;         // weight decay applies (matrices and embeddings, not biases and norms)
};

// In arena order. A split of the model into stages concatenates to the same list.
std::vector<ParameterSpec> parameters_of(const StageSpec& spec);
std::size_t parameter_count(const StageSpec& spec);  // floats, no padding

// Balanced by cost (FLOPs of a forward, head and embedding counted), every stage non-empty, contiguous.
// `layers_per_stage` empty = balanced; else exactly that split. ERRORS: kInput (impossible split, dim not a multiple of
// heads, zero extents).
Result<std::vector<StageSpec>> split_model(const ModelSpec& model, std::uint16_t stages,
                                           const std::vector<std::uint32_t>& layers_per_stage = {});

// Writes the initial value of each tensor: normal(0, 0.02) for matrices and embeddings, normal(0, 0.02 / sqrt(2 *
// layers)) for the two projections into the residual stream, 1 for norm weights, 0 for biases. Drawn from (seed, tensor
// name) alone: every replica and every split start from the same numbers.
void initialise(const StageSpec& spec, std::span<float> arena);

}  // namespace shoal
