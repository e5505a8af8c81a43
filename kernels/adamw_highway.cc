// AdamW's loop, compiled once per instruction set and chosen at run time. Every operation is one of the rule
// (kernels/adamw_rule.h), none of them fused.
#include <cstddef>

#include "kernels/fast_cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/adamw_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal::fast_cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;

template <bool kGivesBack, bool kShifts>
std::size_t StepRange(const AdamWRates& rates, float keep, const AdamWFlat& a, std::size_t begin, std::size_t end) {
  const F32 f32;
  const std::size_t lanes = hn::Lanes(f32);
  const auto scale = hn::Set(f32, rates.gradient_scale), keeps = hn::Set(f32, keep);
  const auto beta1 = hn::Set(f32, rates.beta1), rest1 = hn::Set(f32, 1 - rates.beta1);
  const auto beta2 = hn::Set(f32, rates.beta2), rest2 = hn::Set(f32, 1 - rates.beta2);
  const auto rate = hn::Set(f32, rates.rate), rate_before = hn::Set(f32, rates.rate_before);
  const auto root_scale = hn::Set(f32, rates.root_scale), eps = hn::Set(f32, rates.eps);
  std::size_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    const auto before = hn::LoadU(f32, a.moment1 + i);
    const auto g = hn::Mul(hn::LoadU(f32, a.gradient_sum + i), scale);
    const auto m = hn::Add(hn::Mul(beta1, before), hn::Mul(rest1, g));
    const auto v = hn::Add(hn::Mul(beta2, hn::LoadU(f32, a.moment2 + i)), hn::Mul(hn::Mul(rest2, g), g));
    const auto root = hn::Add(hn::Mul(hn::Sqrt(v), root_scale), eps);
    auto step = hn::Mul(rate, m);
    if constexpr (kGivesBack) step = hn::Sub(step, hn::Mul(rate_before, before));
    auto next = hn::Sub(hn::Mul(keeps, hn::LoadU(f32, a.parameters + i)), hn::Div(step, root));
    if constexpr (kShifts) next = hn::Add(next, hn::LoadU(f32, a.shift + i));
    hn::StoreU(m, f32, a.moment1_out + i);
    hn::StoreU(v, f32, a.moment2_out + i);
    hn::StoreU(next, f32, a.parameters_out + i);
  }
  return i;
}

std::size_t AdamWRange(const AdamWRates& rates, float keep, const AdamWFlat& a, std::size_t begin, std::size_t end) {
  const bool gives_back = rates.rate_before != 0, shifts = a.shift != nullptr;
  if (gives_back)
    return shifts ? StepRange<true, true>(rates, keep, a, begin, end)
                  : StepRange<true, false>(rates, keep, a, begin, end);
  return shifts ? StepRange<false, true>(rates, keep, a, begin, end)
                : StepRange<false, false>(rates, keep, a, begin, end);
}

}  // namespace shoal::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::fast_cpu {

HWY_EXPORT(AdamWRange);

std::size_t adamw_range(const AdamWRates& rates, float keep, const AdamWFlat& arrays, std::size_t begin,
                        std::size_t end) {
  return HWY_DYNAMIC_DISPATCH(AdamWRange)(rates, keep, arrays, begin, end);
}

}  // namespace shoal::fast_cpu
#endif
