#pragma once
// fp32 <-> 16-bit floats: bf16 (8 bits of significand, fp32's range) and IEEE fp16 (11 bits, at most 65504).
// The rule of one value: kernels/half_rule.h. Bound, for finite input within the format's range: |x - decoded| <=
// 2^-9 |x| (bf16) or 2^-12 |x| (fp16), or half of the smallest subnormal (2^-134, 2^-25) where that is more.
// Thread-safe: no state. Ownership: borrows all spans for the call; input and output must not overlap.
// REQUIRES (all four): halves.size() == 2 * values.size(); no alignment beyond the float's.
#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal {

enum class HalfFormat : std::uint8_t { kBf16, kFp16 };

// values (n) -> halves (2 n bytes, little-endian). Returns whether all values are finite; the others become NaN.
bool narrow_to_half(HalfFormat format, std::span<const float> values, std::span<std::uint8_t> halves);
// halves (2 n bytes) -> values (n). Returns whether all of them are finite.
bool widen_half(HalfFormat format, std::span<const std::uint8_t> halves, std::span<float> values);

// The scalar twins: the specification. The two above return the same bits.
bool narrow_to_half_twin(HalfFormat format, std::span<const float> values, std::span<std::uint8_t> halves);
bool widen_half_twin(HalfFormat format, std::span<const std::uint8_t> halves, std::span<float> values);

}  // namespace shoal
