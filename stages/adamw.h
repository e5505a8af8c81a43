#pragma once
// Clipping by norm and AdamW over flat arrays of one stage; matrices of layers may take Muon's step instead
// (stages/muon.h). Pure functions; borrow everything. The result does not depend on how the work is cut among threads:
// sums go by fixed blocks, the rest is per element.
#include <cstdint>
#include <span>

#include "common/result.h"
#include "kernels/norm.h"
#include "stages/inner_step.h"
#include "stages/step_arrays.h"

namespace shoal {

// Norm of the mean gradient. ERRORS: kNonFinite (a value is not finite, or so large that its square would overflow a
// moment).
Result<double> mean_gradient_norm(std::span<const float> gradient_sum, std::uint64_t targets,
                                  const ParallelFor& parallel = serial_for());

// The same screen for a norm that was computed elsewhere.
Result<double> check_mean_gradient_norm(double norm);

// What the step does to every element alike (Loshchilov and Hutter 2019, algorithm 2; decay is multiplied by lr as in
// common use; m' is the first moment before the step):
//   g = gradient_scale * sum;  m = beta1 m' + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   p = keep * p - (rate * m - rate_before * m') / (sqrt(v) * root_scale + eps) [+ shift],
//   keep = 1 - lr * weight_decay where the tensor decays, else 1
//
// Looking ahead: with c = look_ahead the parameters are those of plain AdamW minus c times its last update u, where the
// next ones lead, so that a gradient is made near the point it will be applied at: p(t) = x(t) - c u(t). Hence the step
// subtracts (1 + c) u(t) and gives back c u(t - 1). That is the update feedback u + c (u - u_before) of "One-Step
// Gradient Delay is Not a Barrier" (arXiv 2606.30634), which takes c = 1. The update before is m', not yet overwritten,
// over the root of today: no third array, but p(t) + c u(t) is plain AdamW only as far as lr and v change little in a
// step, and decay acts on p. With c = 0 every bit is plain AdamW's. After zeroed moments (a session that joined
// between rounds) m' = 0: nothing is given back, whatever the step's number says, for nothing was taken.
//
// The order of operations and their rounding: kernels/adamw_rule.h.
//   gradient_scale  1 / targets, times clip_norm / norm when the norm is above it
//   rate            lr (1 + look_ahead) / (1 - beta1^step)
//   rate_before     lr look_ahead_before / (1 - beta1^(step - 1)); 0 at step 1
//   root_scale      1 / sqrt(1 - beta2^step)
//
// REQUIRES: step.targets > 0; step.step > 0, and above 1 where look_ahead_before is not 0.
AdamWFactors adamw_factors(const InnerStep& step, double gradient_norm);

// `parameters` gives the ranges that decay. REQUIRES: they cover the arrays.
void adamw_apply(std::span<const ParameterSpec> parameters, const AdamWFactors& factors, const AdamWArrays& arrays,
                 const ParallelFor& parallel = serial_for());

// mean_gradient_norm, adamw_factors and adamw_apply in one: returns the norm before clipping. On error nothing is
// written.
Result<double> adamw_step(std::span<const ParameterSpec> parameters, const InnerStep& step, const AdamWArrays& arrays,
                          const ParallelFor& parallel = serial_for());

}  // namespace shoal
