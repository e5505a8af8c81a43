#pragma once
// What one stage of the model is: which layers, which parameters, where each lies in the flat arena. Pure; no torch.
#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/route.h"
#include "stages/model_family.h"

namespace shoal {

struct StageSpec {
  ModelSpec model;
  StageId stage;
  std::uint16_t stages = 1;
  std::uint32_t first_layer = 0;  // layers [first_layer, end_layer)
  std::uint32_t end_layer = 0;
  Route route() const { return route_of(stage, stages); }
  bool is_first() const { return !route().before; }  // owns the embedding
  bool is_last() const { return !route().next; }     // owns final norm, head and loss
  auto operator<=>(const StageSpec&) const = default;
};

// The first of its parts (ParameterSpec::part); the last one before the head is that of its last layer.
inline std::uint32_t first_part(const StageSpec& spec) { return spec.is_first() ? 0 : 1 + spec.first_layer; }

// Those that are trained, in arena order. A split of the model into stages concatenates to the same list.
std::vector<ParameterSpec> parameters_of(const StageSpec& spec);
std::size_t parameter_count(const StageSpec& spec);  // floats, no padding

// Balanced by cost (FLOPs of a forward, head and embedding counted), every stage non-empty, contiguous; stages of a
// model with a narrow boundary meet at its cuts. `layers_per_stage` empty = balanced; else exactly that split. ERRORS:
// kInput (impossible split, one that meets elsewhere, dim not a multiple of heads, zero extents).
Result<std::vector<StageSpec>> split_model(const ModelSpec& model, std::uint16_t stages,
                                           const std::vector<std::uint32_t>& layers_per_stage = {});

// FLOPs of a forward of one position, as the balanced split counts them.
double forward_cost(const StageSpec& spec);

// Writes the initial value of each tensor, as its ParameterSpec says. Drawn from seed and the name it is drawn under
// alone: every replica and every split start from the same numbers.
void initialise(const StageSpec& spec, std::span<float> arena);

}  // namespace shoal
