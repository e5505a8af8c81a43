#pragma once
// Low-rank adapters (Hu et al. 2021, arXiv 2106.09685, equation 3): a matrix W of a layer acts as W + s B A with A (r,
// in), B (out, r) and s = alpha / r. With them A and B alone are trained and are the stage's parameters; the model that
// they stand beside, its base, stays as it was given. A begins with normal values, B with zeros: the first model is the
// base. Pure; no torch. Thread: any.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stages/stage_spec.h"

namespace shoal {

inline bool has_adapters(const ModelSpec& model) { return model.lora_rank > 0; }
// s.
double adapter_scale(const ModelSpec& model);
// The same model, or stage, without them. Its parameters are the floats of ArenaRole::kBase.
ModelSpec base_of(ModelSpec model);
StageSpec base_of(StageSpec spec);

// The adapters of these parameters of the base, A in front of B, in their order; `offset` and `part` are the caller's.
std::vector<ParameterSpec> adapters_of(const ModelSpec& model, std::span<const ParameterSpec> base);
// Last words of the names of the matrices that have adapters: lora_targets, or all that a layer has.
std::vector<std::string> adapter_targets(const ModelSpec& model);
// ERRORS: kInput (a target that no layer has, a rank beyond a matrix's).
Status check_adapters(const ModelSpec& model);

// Where the adapters of a stage lie: a base parameter, and the places of A and B among parameters_of(spec).
struct AdapterPlaces {
  std::size_t down = 0, up = 0;
};
// One for each parameter of the base, in arena order; none where it has no adapter.
std::vector<std::optional<AdapterPlaces>> adapter_places(const StageSpec& spec);

// What the stage is with its adapters put into the base: base += s B A. REQUIRES: sizes as parameter_count of base_of()
// and of the spec.
void merge_adapters(const StageSpec& spec, std::span<const float> adapters, std::span<float> base);

}  // namespace shoal
