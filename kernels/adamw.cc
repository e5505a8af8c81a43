#include "kernels/adamw.h"

#include <span>

#include "kernels/adamw_rule.h"
#include "kernels/fast_cpu.h"
#include "kernels/half.h"

namespace shoal {
namespace {

template <bool kGivesBack>
void step_range(const AdamWRates& rates, float keep, const AdamWFlat& a, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) adamw_element<kGivesBack>(rates, keep, a, i);
}

}  // namespace

void adamw_range_twin(const AdamWRates& rates, float keep, const AdamWFlat& arrays, std::size_t begin,
                      std::size_t end) {
  const auto step = rates.rate_before == 0 ? step_range<false> : step_range<true>;
  step(rates, keep, arrays, begin, end);
}

void adamw_range(const AdamWRates& rates, float keep, const AdamWFlat& arrays, std::size_t begin, std::size_t end) {
#if SHOAL_WITH_NET
  const std::size_t done = fast_cpu::adamw_range(rates, keep, arrays, begin, end);
  if (arrays.halves != nullptr) {
    const std::span<const float> values(arrays.parameters_out + begin, done - begin);
    narrow_to_half(HalfFormat::kBf16, values,
                   {reinterpret_cast<std::uint8_t*>(arrays.halves + begin), 2 * values.size()});
  }
  adamw_range_twin(rates, keep, arrays, done, end);
#else
  adamw_range_twin(rates, keep, arrays, begin, end);
#endif
}

}  // namespace shoal
