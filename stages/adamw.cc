#include "stages/adamw.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/check.h"
#include "kernels/adamw_rule.h"
#include "stages/muon.h"

namespace shoal {
namespace {

AdamWFlat flat(const AdamWArrays& a) {
  AdamWFlat flat;
  flat.parameters = a.parameters.data();
  flat.gradient_sum = a.gradient_sum.data();
  flat.moment1 = a.moment1.data();
  flat.moment2 = a.moment2.data();
  flat.shift = a.shift.empty() ? nullptr : a.shift.data();
  flat.parameters_out = a.parameters_out.data();
  flat.moment1_out = a.moment1_out.data();
  flat.moment2_out = a.moment2_out.data();
  return flat;
}

}  // namespace

Result<double> mean_gradient_norm(std::span<const float> gradient_sum, std::uint64_t targets,
                                  const ParallelFor& parallel) {
  SHOAL_CHECK(targets > 0);
  return check_mean_gradient_norm(mean_norm(sum_of_squares(gradient_sum, parallel), targets));
}

Result<double> check_mean_gradient_norm(double norm) {
  if (!is_usable_norm(norm)) {
    return make_error(ErrorCode::kNonFinite, "window gradient: norm " + std::to_string(norm) + " is not usable");
  }
  return norm;
}

AdamWFactors adamw_factors(const InnerStep& step, double gradient_norm) {
  SHOAL_CHECK(step.targets > 0);
  SHOAL_CHECK(step.step > 0);
  SHOAL_CHECK(step.step > 1 || step.look_ahead_before == 0);
  const double steps = static_cast<double>(step.step);
  AdamWFactors factors;
  factors.gradient_scale = gradient_scale_of(gradient_norm, step.targets, step.clip_norm);
  factors.beta1 = static_cast<float>(step.beta1);
  factors.beta2 = static_cast<float>(step.beta2);
  factors.rate = static_cast<float>(step.lr * (1 + step.look_ahead) / (1 - std::pow(step.beta1, steps)));
  if (step.look_ahead_before != 0) {
    factors.rate_before = static_cast<float>(step.lr * step.look_ahead_before / (1 - std::pow(step.beta1, steps - 1)));
  }
  factors.root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(step.beta2, steps)));
  factors.eps = static_cast<float>(step.eps);
  factors.keep = static_cast<float>(1 - step.lr * step.weight_decay);
  factors.muon = step.muon;
  if (step.muon) {
    factors.matrix_rate = static_cast<float>(step.lr * (1 + step.look_ahead));
    factors.matrix_rate_before = static_cast<float>(step.lr * step.look_ahead_before);
  }
  return factors;
}

void adamw_apply(std::span<const ParameterSpec> parameters, const AdamWFactors& factors, const AdamWArrays& arrays,
                 const ParallelFor& parallel) {
  const std::size_t size = arrays.parameters.size();
  for (const std::size_t other : {arrays.gradient_sum.size(), arrays.moment1.size(), arrays.moment2.size(),
                                  arrays.parameters_out.size(), arrays.moment1_out.size(), arrays.moment2_out.size()}) {
    SHOAL_CHECK_EQ(other, size);
  }
  SHOAL_CHECK(arrays.shift.empty() || arrays.shift.size() == size);
  const AdamWFlat elements = flat(arrays);
  std::size_t covered = 0;
  for (const ParameterSpec& parameter : parameters) {
    SHOAL_CHECK_EQ(parameter.offset, covered);
    const std::size_t count = static_cast<std::size_t>(element_count(parameter.shape));
    covered += count;
    if (factors.muon && parameter.matrices > 0) {
      muon_apply(parameter, factors, arrays, parallel);
      continue;
    }
    const float keep = parameter.decays ? factors.keep : 1.0f;
    parallel(count, std::size_t{1} << 15, [&](std::size_t begin, std::size_t end) {
      adamw_range(factors, keep, elements, parameter.offset + begin, parameter.offset + end);
    });
  }
  SHOAL_CHECK_EQ(covered, size);
}

Result<double> adamw_step(std::span<const ParameterSpec> parameters, const InnerStep& step, const AdamWArrays& arrays,
                          const ParallelFor& parallel) {
  SHOAL_ASSIGN(const double norm, mean_gradient_norm(arrays.gradient_sum, step.targets, parallel));
  adamw_apply(parameters, adamw_factors(step, norm), arrays, parallel);
  return norm;
}

}  // namespace shoal
