#pragma once
// What a step of either kind, AdamW's (stages/adamw.h) or Muon's (stages/muon.h), is given. Values; borrow the arrays.
#include <span>

#include "kernels/adamw.h"
#include "kernels/parallel_for.h"
#include "stages/stage_spec.h"

namespace shoal {

struct AdamWFactors : AdamWRates {
  float keep = 1;  // of tensors that decay
  bool muon = false;
  float matrix_rate = 0, matrix_rate_before = 0;  // muon: lr (1 + look_ahead), lr look_ahead_before
};

// All of equal length. Outputs may be the inputs themselves (in place) or other arrays. An empty shift means none.
struct AdamWArrays {
  std::span<const float> parameters, gradient_sum, moment1, moment2, shift;
  std::span<float> parameters_out, moment1_out, moment2_out;
};

}  // namespace shoal
