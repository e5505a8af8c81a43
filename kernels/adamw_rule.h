#pragma once
// AdamW on one element, shared by the scalar twin and the CUDA kernel; the Highway variant does the same operations in
// the same order. Each operator below is one operation in fp32 (norm and clipping: in double), rounded to the nearest,
// ties to even, subnormals kept; none is fused with another: this room is compiled with -ffp-contract=off and
// -fmad=false. Division and square root are IEEE's, which is what nvcc gives unless it is told otherwise.
//   g = gradient_sum * gradient_scale
//   m = beta1 * m' + (1 - beta1) * g
//   v = beta2 * v' + ((1 - beta2) * g) * g
//   d = sqrt(v) * root_scale + eps
//   p = keep * p' - (rate * m) / d                          where rate_before is 0
//   p = keep * p' - (rate * m - rate_before * m') / d       elsewhere
//   p = p + shift                                           where there is a shift
//   h = bf16(p)                                             where one is asked for (kernels/half_rule.h)
// The rates: kernels/adamw.h. A NaN's sign and payload are the machine's own.
#include <cmath>

#include "kernels/adamw.h"
#include "kernels/half_rule.h"

namespace shoal {

// Element i of the arrays. kGivesBack: rate_before is not 0; a term times 0 could turn the sign of a zero.
template <bool kGivesBack>
SHOAL_HOST_DEVICE inline void adamw_element(const AdamWRates& f, float keep, const AdamWFlat& a, std::size_t i) {
  const float rest1 = 1 - f.beta1, rest2 = 1 - f.beta2;
  const float before = a.moment1[i];
  const float g = a.gradient_sum[i] * f.gradient_scale;
  const float m = f.beta1 * before + rest1 * g;
  const float v = f.beta2 * a.moment2[i] + rest2 * g * g;
  const float root = std::sqrt(v) * f.root_scale + f.eps;
  float step = f.rate * m;
  if (kGivesBack) step = step - f.rate_before * before;
  float parameter = keep * a.parameters[i] - step / root;
  if (a.shift != nullptr) parameter = parameter + a.shift[i];
  a.parameters_out[i] = parameter;
  a.moment1_out[i] = m;
  a.moment2_out[i] = v;
  if (a.halves != nullptr) a.halves[i] = bf16_of(parameter);
}

// The norm of the mean gradient, in double.
SHOAL_HOST_DEVICE inline double mean_norm(double sum_of_squares, std::uint64_t targets) {
  return std::sqrt(sum_of_squares) / static_cast<double>(targets);
}
SHOAL_HOST_DEVICE inline bool is_usable_norm(double norm) { return norm <= kMeanGradientMax; }  // not that of a NaN
// What the gradient sum is multiplied with: in double, but for the last rounding. clip_norm = 0 clips nothing.
SHOAL_HOST_DEVICE inline float gradient_scale_of(double norm, std::uint64_t targets, double clip_norm) {
  const double clip = clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1.0;
  return static_cast<float>(clip / static_cast<double>(targets));
}
SHOAL_HOST_DEVICE inline StepScale step_scale(double sum_of_squares, std::uint64_t targets, double clip_norm) {
  const double norm = mean_norm(sum_of_squares, targets);
  return {norm, gradient_scale_of(norm, targets, clip_norm), is_usable_norm(norm) ? 1u : 0u};
}

}  // namespace shoal
