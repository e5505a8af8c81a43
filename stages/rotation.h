#pragma once
// Rotary position embeddings (Su et al. 2021): by how much a head's pairs turn a place. Pure. Thread: any.
#include <vector>

#include "stages/model_family.h"

namespace shoal {

// Radians a place, one of each pair of a head's width w, fast ones first: theta^(-2 i / w), rounded to a float as
// transformers has them. With rope_scaling the slow ones are divided by its factor and those between its two wave
// lengths blended (Llama 3's models).
std::vector<double> rotation_frequencies(const ModelSpec& model);

}  // namespace shoal
