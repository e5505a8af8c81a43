#pragma once
// config.json of a model as Python's transformers saves it: which of our families it is, and its shapes. What it asks
// for and we do not have is refused by the key's name and value; what we leave out is said in a note. A model with a
// narrow boundary has a model_type of its own, in whose config the plain model's is "base" (modeling_boundary.py).
// Pure. Thread: any.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "stages/model_family.h"

namespace shoal {

inline constexpr std::size_t kModelConfigBytesMax = 1u << 20;
inline constexpr std::string_view kBoundaryModelType = "shoal_boundary";
// In front of the names of all that is not the boundary's, where a model has one.
inline constexpr std::string_view kInsideBoundary = "base.";

struct PretrainedConfig {
  ModelSpec model;    // positions = context, the longest sequence; seed 0
  bool tied = false;  // the head's matrix is the embedding's
  std::vector<std::string> notes;
};

// ERRORS: kMalformed (no JSON, a value of the wrong kind or out of range), kMissing (a key), kUnsupported (what we do
// not have), kInput (shapes that do not go together).
Result<PretrainedConfig> parse_pretrained_config(std::string_view json);

}  // namespace shoal
