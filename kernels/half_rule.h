#pragma once
// The arithmetic of one 16-bit float, shared by the scalar twin, the Highway variant and the CUDA kernel. Rounding is
// to the nearest, ties to even, as IEEE 754 has it, with two differences, so that a reader sees what a writer was
// given:
//   - a finite value beyond the largest of the format is held at the largest, and never becomes an infinity;
//   - NaN and infinities become kHalfNaN, which no finite value does.
#include "kernels/int8_rule.h"

namespace shoal {

inline constexpr std::uint32_t kHalfNaN = 0x7fffu;  // in both formats
inline constexpr std::uint32_t kHalfSign = 0x8000u;

inline constexpr std::uint32_t kBf16Max = 0x7f7fu;       // 255 * 2^120
inline constexpr std::uint32_t kBf16Infinity = 0x7f80u;  // this and above, without the sign: infinity or NaN

inline constexpr std::uint32_t kFp16Max = 0x7bffu;  // 65504
inline constexpr std::uint32_t kFp16Infinity = 0x7c00u;
inline constexpr std::uint32_t kFp16MinNormal = 0x0400u;          // 2^-14
inline constexpr std::uint32_t kFp16MinNormalBits = 0x38800000u;  // the same as fp32
inline constexpr std::uint32_t kFp16Rebias = 0x38000000u;         // fp32's exponent bias less fp16's, in place
// The last bit of floats around this one weighs 2^-24, as that of fp16's subnormals: adding it rounds to them.
inline constexpr std::uint32_t kFp16SubnormalBits = 0x3f000000u;  // 0.5

SHOAL_HOST_DEVICE inline std::uint32_t bits_of_float(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  return std::bit_cast<std::uint32_t>(value);
#endif
}
SHOAL_HOST_DEVICE inline float float_of_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

SHOAL_HOST_DEVICE inline std::uint16_t bf16_of(float value) {
  const std::uint32_t bits = bits_of_float(value), magnitude = bits & kAbsMask;
  if (magnitude >= kInfinityBits) return static_cast<std::uint16_t>(kHalfNaN);
  const std::uint32_t rounded = (magnitude + 0x7fffu + (magnitude >> 16 & 1u)) >> 16;
  return static_cast<std::uint16_t>((rounded < kBf16Max ? rounded : kBf16Max) | (bits >> 16 & kHalfSign));
}
SHOAL_HOST_DEVICE inline float float_of_bf16(std::uint32_t half) { return float_of_bits(half << 16); }

SHOAL_HOST_DEVICE inline std::uint16_t fp16_of(float value) {
  const std::uint32_t bits = bits_of_float(value), magnitude = bits & kAbsMask;
  if (magnitude >= kInfinityBits) return static_cast<std::uint16_t>(kHalfNaN);
  std::uint32_t rounded;
  if (magnitude >= kFp16MinNormalBits) {
    rounded = (magnitude - kFp16Rebias + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  } else {
    rounded = bits_of_float(float_of_bits(magnitude) + float_of_bits(kFp16SubnormalBits)) - kFp16SubnormalBits;
  }
  return static_cast<std::uint16_t>((rounded < kFp16Max ? rounded : kFp16Max) | (bits >> 16 & kHalfSign));
}
// NaN and infinities become NaN.
SHOAL_HOST_DEVICE inline float float_of_fp16(std::uint32_t half) {
  const std::uint32_t magnitude = half & (kHalfSign - 1), sign = (half & kHalfSign) << 16;
  std::uint32_t bits;
  if (magnitude >= kFp16Infinity) {
    bits = kAbsMask;
  } else if (magnitude >= kFp16MinNormal) {
    bits = (magnitude << 13) + kFp16Rebias;
  } else {
    bits = bits_of_float(float_of_bits(kFp16SubnormalBits | magnitude) - float_of_bits(kFp16SubnormalBits));
  }
  return float_of_bits(bits | sign);
}

}  // namespace shoal
