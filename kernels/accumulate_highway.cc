// The accumulation loops, compiled once per instruction set and chosen at run time.
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/accumulate_rule.h"
#include "kernels/fast_cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/accumulate_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal::fast_cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;

// Elements screened before the loop may stop early: large enough that the reduction costs nothing.
constexpr std::size_t kScreenBlock = 4096;

std::int32_t AbsMaxBits(const float* HWY_RESTRICT values, std::size_t count) {
  const F32 f32;
  const I32 i32;
  const std::size_t lanes = hn::Lanes(f32);
  const auto abs_mask = hn::Set(i32, static_cast<std::int32_t>(kAbsMask));
  auto max0 = hn::Zero(i32);
  auto max1 = hn::Zero(i32);
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    max0 = hn::Max(max0, hn::And(hn::BitCast(i32, hn::LoadU(f32, values + i)), abs_mask));
    max1 = hn::Max(max1, hn::And(hn::BitCast(i32, hn::LoadU(f32, values + i + lanes)), abs_mask));
  }
  std::int32_t result = hn::GetLane(hn::MaxOfLanes(i32, hn::Max(max0, max1)));
  for (; i < count; ++i) {
    const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(values[i]) & kAbsMask);
    result = bits > result ? bits : result;
  }
  return result;
}

bool AllFinite(const float* HWY_RESTRICT values, std::size_t count) {
  for (std::size_t first = 0; first < count; first += kScreenBlock) {
    const std::size_t block = count - first < kScreenBlock ? count - first : kScreenBlock;
    if (static_cast<std::uint32_t>(AbsMaxBits(values + first, block)) >= kInfinityBits) return false;
  }
  return true;
}

// With sign = +1 or -1 the product is exact, so a fused multiply-add rounds exactly as the twin does.
void Accumulate(float* HWY_RESTRICT sum, const float* HWY_RESTRICT gradient, std::size_t count, float sign) {
  const F32 f32;
  const std::size_t lanes = hn::Lanes(f32);
  const auto factor = hn::Set(f32, sign);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::MulAdd(factor, hn::LoadU(f32, gradient + i), hn::LoadU(f32, sum + i)), f32, sum + i);
  }
  for (; i < count; ++i) sum[i] = accumulated(sum[i], gradient[i], sign);
}

}  // namespace shoal::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::fast_cpu {

HWY_EXPORT(AllFinite);
HWY_EXPORT(Accumulate);

bool all_finite(const float* values, std::size_t count) { return HWY_DYNAMIC_DISPATCH(AllFinite)(values, count); }

void accumulate(float* sum, const float* gradient, std::size_t count, float sign) {
  HWY_DYNAMIC_DISPATCH(Accumulate)(sum, gradient, count, sign);
}

}  // namespace shoal::fast_cpu
#endif
