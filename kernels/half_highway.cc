// The loops of 16-bit floats, compiled once per instruction set and chosen at run time.
#include <cstring>

#include "kernels/fast_cpu.h"
#include "kernels/half_rule.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/half_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal::fast_cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;
using FloatLanes = hn::Vec<F32>;
using IntLanes = hn::Vec<I32>;

HWY_INLINE IntLanes SetInts(std::uint32_t bits) { return hn::Set(I32(), static_cast<std::int32_t>(bits)); }
HWY_INLINE FloatLanes SetFloat(std::uint32_t bits) { return hn::BitCast(F32(), SetInts(bits)); }

// Halves lie at any address: no wider element is loaded than one of bytes.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE hn::Vec<U16> LoadHalves(const std::uint8_t* in) {
  std::uint16_t half;
  std::memcpy(&half, in, 2);
  return hn::Set(U16(), half);
}
HWY_INLINE void StoreHalves(hn::Vec<U16> halves, std::uint8_t* out) {
  const std::uint16_t half = hn::GetLane(halves);
  std::memcpy(out, &half, 2);
}
#else
using HalfBytes = hn::Repartition<std::uint8_t, U16>;
HWY_INLINE hn::Vec<U16> LoadHalves(const std::uint8_t* in) { return hn::BitCast(U16(), hn::LoadU(HalfBytes(), in)); }
HWY_INLINE void StoreHalves(hn::Vec<U16> halves, std::uint8_t* out) {
  hn::StoreU(hn::BitCast(HalfBytes(), halves), HalfBytes(), out);
}
#endif

// The even of two neighbours that are as near: adds just less than half a unit, or half of one to an odd number.
template <int kShift>
HWY_INLINE IntLanes RoundAway(IntLanes magnitude) {
  const auto odd = hn::And(hn::ShiftRight<kShift>(magnitude), SetInts(1));
  return hn::ShiftRight<kShift>(hn::Add(magnitude, hn::Add(odd, SetInts((1u << (kShift - 1)) - 1))));
}

HWY_INLINE IntLanes Bf16OfMagnitude(IntLanes magnitude) { return hn::Min(RoundAway<16>(magnitude), SetInts(kBf16Max)); }

HWY_INLINE IntLanes Fp16OfMagnitude(IntLanes magnitude) {
  const I32 i32;
  const auto normal = RoundAway<13>(hn::Sub(magnitude, SetInts(kFp16Rebias)));
  const auto shifted = hn::Add(hn::BitCast(F32(), magnitude), SetFloat(kFp16SubnormalBits));
  const auto subnormal = hn::Sub(hn::BitCast(i32, shifted), SetInts(kFp16SubnormalBits));
  const auto is_subnormal = hn::Lt(magnitude, SetInts(kFp16MinNormalBits));
  return hn::Min(hn::IfThenElse(is_subnormal, subnormal, normal), SetInts(kFp16Max));
}

template <HalfFormat kFormat>
bool Narrow(const float* HWY_RESTRICT values, std::size_t count, std::uint8_t* HWY_RESTRICT halves) {
  const F32 f32;
  const I32 i32;
  const U16 u16;
  const std::size_t lanes = hn::Lanes(f32);
  const auto infinity = SetInts(kInfinityBits);
  auto greatest = hn::Zero(i32);
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto bits = hn::BitCast(i32, hn::LoadU(f32, values + i));
    const auto magnitude = hn::And(bits, SetInts(kAbsMask));
    greatest = hn::Max(greatest, magnitude);
    auto half = kFormat == HalfFormat::kBf16 ? Bf16OfMagnitude(magnitude) : Fp16OfMagnitude(magnitude);
    half = hn::Or(half, hn::And(hn::ShiftRight<16>(bits), SetInts(kHalfSign)));
    half = hn::IfThenElse(hn::Lt(magnitude, infinity), half, SetInts(kHalfNaN));
    StoreHalves(hn::DemoteTo(u16, half), halves + 2 * i);
  }
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, greatest))) < kInfinityBits;
}

HWY_INLINE IntLanes BitsOfFp16(IntLanes magnitude) {
  const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), SetInts(kFp16Rebias));
  const auto raised = hn::BitCast(F32(), hn::Or(magnitude, SetInts(kFp16SubnormalBits)));
  const auto subnormal = hn::BitCast(I32(), hn::Sub(raised, SetFloat(kFp16SubnormalBits)));
  const auto small = hn::IfThenElse(hn::Lt(magnitude, SetInts(kFp16MinNormal)), subnormal, normal);
  return hn::IfThenElse(hn::Lt(magnitude, SetInts(kFp16Infinity)), small, SetInts(kAbsMask));
}

template <HalfFormat kFormat>
bool Widen(const std::uint8_t* HWY_RESTRICT halves, std::size_t count, float* HWY_RESTRICT values) {
  const F32 f32;
  const I32 i32;
  const std::size_t lanes = hn::Lanes(f32);
  auto greatest = hn::Zero(i32);
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto half = hn::PromoteTo(i32, LoadHalves(halves + 2 * i));
    const auto magnitude = hn::And(half, SetInts(kHalfSign - 1));
    greatest = hn::Max(greatest, magnitude);
    const auto sign = hn::ShiftLeft<16>(hn::And(half, SetInts(kHalfSign)));
    const auto bits = kFormat == HalfFormat::kBf16 ? hn::ShiftLeft<16>(magnitude) : BitsOfFp16(magnitude);
    hn::StoreU(hn::BitCast(f32, hn::Or(bits, sign)), f32, values + i);
  }
  const std::uint32_t infinity = kFormat == HalfFormat::kBf16 ? kBf16Infinity : kFp16Infinity;
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, greatest))) < infinity;
}

bool NarrowToHalf(HalfFormat format, const float* values, std::size_t count, std::uint8_t* halves) {
  return format == HalfFormat::kBf16 ? Narrow<HalfFormat::kBf16>(values, count, halves)
                                     : Narrow<HalfFormat::kFp16>(values, count, halves);
}

bool WidenHalf(HalfFormat format, const std::uint8_t* halves, std::size_t count, float* values) {
  return format == HalfFormat::kBf16 ? Widen<HalfFormat::kBf16>(halves, count, values)
                                     : Widen<HalfFormat::kFp16>(halves, count, values);
}

}  // namespace shoal::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::fast_cpu {

HWY_EXPORT(NarrowToHalf);
HWY_EXPORT(WidenHalf);

bool narrow_to_half(HalfFormat format, const float* values, std::size_t count, std::uint8_t* halves) {
  return HWY_DYNAMIC_DISPATCH(NarrowToHalf)(format, values, count, halves);
}

bool widen_half(HalfFormat format, const std::uint8_t* halves, std::size_t count, float* values) {
  return HWY_DYNAMIC_DISPATCH(WidenHalf)(format, halves, count, values);
}

}  // namespace shoal::fast_cpu
#endif
