#pragma once
// The shape of a new model of about so many parameters. Pure; thread-safe.
//
// What a model learns depends on its size, and hardly on how that is shared between width and depth (Kaplan et al.,
// 2020, arXiv 2001.08361, section 3.1). So of the widths that compute well, multiples of 64 (and 32 for the smallest
// models), that one is taken whose nearest number of layers comes close to the size and is about a 64th of the width,
// as in GPT-2. Heads are 64 wide, below a width of 256 they are 32. A sequence has as many tokens as the model is wide,
// rounded down to a power of two, from 64 to 1024.
#include <cstdint>

#include "common/result.h"
#include "stages/model_family.h"

namespace shoal {

// A gpt2 that can be cut into `stages`; every number counts, also the two tables of the vocabulary. ERRORS: kInput (no
// shape comes within a quarter of the size; the nearest is named). REQUIRES: vocabulary > 0, stages > 0.
Result<ModelSpec> model_of_size(double parameters, std::uint32_t vocabulary, std::uint16_t stages);

// Those of the whole model. REQUIRES: a model that split_model() takes.
std::uint64_t parameters_of_model(const ModelSpec& model);

}  // namespace shoal
