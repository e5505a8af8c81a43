#include "kernels/half.h"

#include <cmath>
#include <cstring>

#include "common/check.h"
#include "kernels/fast_cpu.h"
#include "kernels/half_rule.h"

namespace shoal {

bool narrow_to_half_twin(HalfFormat format, std::span<const float> values, std::span<std::uint8_t> halves) {
  SHOAL_CHECK_EQ(halves.size(), 2 * values.size());
  bool finite = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = format == HalfFormat::kBf16 ? bf16_of(values[i]) : fp16_of(values[i]);
    std::memcpy(&halves[2 * i], &half, 2);
    finite = finite && std::isfinite(values[i]);
  }
  return finite;
}

bool widen_half_twin(HalfFormat format, std::span<const std::uint8_t> halves, std::span<float> values) {
  SHOAL_CHECK_EQ(halves.size(), 2 * values.size());
  bool finite = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half;
    std::memcpy(&half, &halves[2 * i], 2);
    values[i] = format == HalfFormat::kBf16 ? float_of_bf16(half) : float_of_fp16(half);
    finite = finite && std::isfinite(values[i]);
  }
  return finite;
}

#if SHOAL_WITH_NET
// The fast variants do a multiple of 16 values.
bool narrow_to_half(HalfFormat format, std::span<const float> values, std::span<std::uint8_t> halves) {
  SHOAL_CHECK_EQ(halves.size(), 2 * values.size());
  const std::size_t whole = values.size() / 16 * 16;
  const bool finite = fast_cpu::narrow_to_half(format, values.data(), whole, halves.data());
  return narrow_to_half_twin(format, values.subspan(whole), halves.subspan(2 * whole)) && finite;
}

bool widen_half(HalfFormat format, std::span<const std::uint8_t> halves, std::span<float> values) {
  SHOAL_CHECK_EQ(halves.size(), 2 * values.size());
  const std::size_t whole = values.size() / 16 * 16;
  const bool finite = fast_cpu::widen_half(format, halves.data(), whole, values.data());
  return widen_half_twin(format, halves.subspan(2 * whole), values.subspan(whole)) && finite;
}
#else
bool narrow_to_half(HalfFormat format, std::span<const float> values, std::span<std::uint8_t> halves) {
  return narrow_to_half_twin(format, values, halves);
}

bool widen_half(HalfFormat format, std::span<const std::uint8_t> halves, std::span<float> values) {
  return widen_half_twin(format, halves, values);
}
#endif

}  // namespace shoal
