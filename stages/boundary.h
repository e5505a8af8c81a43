#pragma once
// A narrow boundary: where two stages meet, the model itself sends k values of a token instead of d. A cut stands in
// front of layer c:
//   down, in the part of layer c - 1:  z = x D^T                        x (B, T, d) -> z (B, T, k)
//   up, in the part of layer c:        y = z U^T + E[token] P^T + Q[place]   -> (B, T, d), which layer c reads
// D (k, d), U (d, k), the token table E (V, r), P (d, r), none where r = d, and Q (positions, d) in families that learn
// their places. All are parameters as any other: nothing is agreed at both ends. E gives back what the token alone
// says; text tokens cross every hop anyway. After MAPL (arXiv 2606.05484), with untied ends; ResBM (2604.11947) in
// another basis. A cut inside a stage has both halves there. Pure; no torch. Thread: any.
#include <cstdint>
#include <string_view>
#include <vector>

#include "stages/model_family.h"
#include "stages/stage_spec.h"

namespace shoal {

inline bool has_boundary(const ModelSpec& model) { return model.boundary != 0; }

// The parameters of a half in the order of the arena; `offset` and `part` are the caller's. Behind a layer: of the cut
// in front of the next one, if any; in front of a layer: of its own.
std::vector<ParameterSpec> down_of(const ModelSpec& model, std::uint32_t layer);  // D
std::vector<ParameterSpec> up_of(const ModelSpec& model, std::uint32_t layer);    // U, E, P, Q

// Whether a parameter of this name is of a half.
bool is_of_boundary(std::string_view name);

// FLOPs of a forward of one sequence over a half.
double down_cost(const ModelSpec& model);
double up_cost(const ModelSpec& model);

// Whether stages may meet in front of the layer, or the model ends there.
inline bool may_meet_at(const ModelSpec& model, std::uint32_t layer) {
  return !has_boundary(model) || layer == 0 || layer == model.layers || model.cut_at(layer);
}

// The layers in front of which the stages of a split meet.
std::vector<std::uint32_t> cuts_between(const std::vector<StageSpec>& stages);

// r where nobody says it: the largest multiple of 64 up to d that keeps E below a twentieth of a stage's layers, 64 at
// least (d where d is less).
std::uint32_t usual_boundary_table(const ModelSpec& model, std::uint16_t stages);

// The same model without its cuts.
ModelSpec without_boundary(ModelSpec model);

// ERRORS: kInput (k not below d, no cuts, cuts out of order or outside the model, a table wider than d, beside
// adapters; a table or cuts without k).
Status check_boundary(const ModelSpec& model);

}  // namespace shoal
