#pragma once
// fp32 <-> int8 in tiles of 64 consecutive elements with one fp32 scale each; the last tile may be shorter.
// The rule of a tile, its source and its two ends of range: kernels/int8_rule.h.
// Bound, for finite input: |x - decoded| <= 0.5001 * scale, or |x| < kInt8TinyMax (1.5e-36) where the tile's scale is
// 0. Decoded values of codes in [-127, 127] and of scales made here are always finite. Thread-safe: no state.
// Ownership: borrows all spans for the call; input and output must not overlap.   Errors: none; a non-finite input
// shows as a NaN scale. REQUIRES (all four): equal counts, scales.size() == int8_tile_count(count).
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal {

inline constexpr std::size_t kInt8TileElements = 64;
constexpr std::size_t int8_tile_count(std::size_t elements) {
  return elements / kInt8TileElements + (elements % kInt8TileElements != 0 ? 1 : 0);
}

// values (n) -> codes (n) in [-127, 127], scales (ceil(n / 64)) in {0} or [kInt8ScaleMin, kInt8ScaleMax], or NaN.
void int8_quantise(std::span<const float> values, std::span<std::int8_t> codes, std::span<float> scales);
// codes (n), scales (ceil(n / 64)) -> values (n).
void int8_dequantise(std::span<const std::int8_t> codes, std::span<const float> scales, std::span<float> values);

// The scalar twins: the specification. The two above return the same bits.
void int8_quantise_twin(std::span<const float> values, std::span<std::int8_t> codes, std::span<float> scales);
void int8_dequantise_twin(std::span<const std::int8_t> codes, std::span<const float> scales, std::span<float> values);

// The instruction set the fast variants run on here ("AVX3_ZEN4"), or "scalar" in a build without Highway.
std::string_view fast_cpu_target();

}  // namespace shoal
