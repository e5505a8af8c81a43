#include "kernels/accumulate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/check.h"
#include "kernels/accumulate_rule.h"
#include "kernels/fast_cpu.h"

namespace shoal {
namespace {

void require_arguments(std::size_t sum, std::size_t gradient, float sign) {
  SHOAL_CHECK_EQ(sum, gradient);
  SHOAL_CHECK_EQ(std::abs(sign), 1.0f);
}

}  // namespace

bool all_finite_twin(std::span<const float> values) { return std::all_of(values.begin(), values.end(), is_finite); }

NonFinite screen_twin(std::span<const float> values) {
  NonFinite found;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!is_finite(values[i]) && found.count++ == 0) found.first = i;
  return found;
}

void accumulate_twin(std::span<float> sum, std::span<const float> gradient, float sign) {
  require_arguments(sum.size(), gradient.size(), sign);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = accumulated(sum[i], gradient[i], sign);
}

bool all_finite(std::span<const float> values) {
#if SHOAL_WITH_NET
  return fast_cpu::all_finite(values.data(), values.size());
#else
  return all_finite_twin(values);
#endif
}

std::optional<std::size_t> first_non_finite(std::span<const float> values) {
  if (all_finite(values)) return std::nullopt;
  return static_cast<std::size_t>(screen_twin(values).first);
}

Status accumulate_checked(std::span<float> sum, std::span<const float> gradient, float sign) {
  require_arguments(sum.size(), gradient.size(), sign);
  if (!all_finite(gradient)) {
    const NonFinite bad = screen_twin(gradient);
    return make_error(ErrorCode::kNonFinite, std::to_string(bad.count) + " of " + std::to_string(gradient.size()) +
                                                 " gradient elements are NaN or infinite, the first at index " +
                                                 std::to_string(bad.first) + " (" +
                                                 std::to_string(gradient[bad.first]) + ")");
  }
#if SHOAL_WITH_NET
  fast_cpu::accumulate(sum.data(), gradient.data(), sum.size(), sign);
#else
  accumulate_twin(sum, gradient, sign);
#endif
  return Status::success();
}

}  // namespace shoal
