// The outer update's loop, compiled once per instruction set and chosen at run time. Every operation is one of the rule
// (kernels/nesterov_rule.h), none of them fused.
#include <cstddef>

#include "kernels/fast_cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nesterov_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal::fast_cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;

std::size_t Nesterov(const NesterovRates& rates, const NesterovArrays& a) {
  const F32 f32;
  const std::size_t lanes = hn::Lanes(f32), count = a.anchor.size();
  const auto lr = hn::Set(f32, rates.lr), keep = hn::Set(f32, rates.momentum);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto delta = hn::LoadU(f32, a.delta.data() + i);
    const auto momentum = hn::Add(hn::Mul(keep, hn::LoadU(f32, a.momentum.data() + i)), delta);
    const auto step = hn::Add(delta, hn::Mul(keep, momentum));
    const auto anchor = hn::Sub(hn::LoadU(f32, a.anchor.data() + i), hn::Mul(lr, step));
    hn::StoreU(momentum, f32, a.momentum_out.data() + i);
    hn::StoreU(anchor, f32, a.anchor_out.data() + i);
  }
  return i;
}

}  // namespace shoal::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::fast_cpu {

HWY_EXPORT(Nesterov);

std::size_t nesterov(const NesterovRates& rates, const NesterovArrays& arrays) {
  return HWY_DYNAMIC_DISPATCH(Nesterov)(rates, arrays);
}

}  // namespace shoal::fast_cpu
#endif
