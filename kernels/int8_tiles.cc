#include "kernels/int8_tiles.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"
#include "kernels/fast_cpu.h"
#include "kernels/int8_rule.h"

namespace shoal {
namespace {

void require_counts(std::size_t values, std::size_t codes, std::size_t scales) {
  SHOAL_CHECK_EQ(values, codes);
  SHOAL_CHECK_EQ(scales, int8_tile_count(values));
}

void quantise_tile(std::span<const float> values, std::int8_t* codes, float* scale) {
  std::uint32_t absmax_bits = 0;
  for (const float value : values) absmax_bits = std::max(absmax_bits, std::bit_cast<std::uint32_t>(value) & kAbsMask);
  const Int8TileScale tile = int8_tile_scale(absmax_bits);
  *scale = tile.scale;
  for (std::size_t i = 0; i < values.size(); ++i) {
    codes[i] = tile.inverse == 0.0f ? std::int8_t{0} : static_cast<std::int8_t>(std::lrint(values[i] * tile.inverse));
  }
}

}  // namespace

void int8_quantise_twin(std::span<const float> values, std::span<std::int8_t> codes, std::span<float> scales) {
  require_counts(values.size(), codes.size(), scales.size());
  for (std::size_t tile = 0; tile < scales.size(); ++tile) {
    const std::size_t first = tile * kInt8TileElements;
    const std::size_t count = std::min(kInt8TileElements, values.size() - first);
    quantise_tile(values.subspan(first, count), &codes[first], &scales[tile]);
  }
}

void int8_dequantise_twin(std::span<const std::int8_t> codes, std::span<const float> scales, std::span<float> values) {
  require_counts(values.size(), codes.size(), scales.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(codes[i]) * scales[i / kInt8TileElements];
  }
}

#if SHOAL_WITH_NET
// The fast variants do whole tiles; what is left is one shorter tile at most.
void int8_quantise(std::span<const float> values, std::span<std::int8_t> codes, std::span<float> scales) {
  require_counts(values.size(), codes.size(), scales.size());
  const std::size_t tiles = values.size() / kInt8TileElements;
  const std::size_t whole = tiles * kInt8TileElements;
  fast_cpu::int8_quantise_tiles(values.data(), tiles, codes.data(), scales.data());
  int8_quantise_twin(values.subspan(whole), codes.subspan(whole), scales.subspan(tiles));
}

void int8_dequantise(std::span<const std::int8_t> codes, std::span<const float> scales, std::span<float> values) {
  require_counts(values.size(), codes.size(), scales.size());
  const std::size_t tiles = values.size() / kInt8TileElements;
  const std::size_t whole = tiles * kInt8TileElements;
  fast_cpu::int8_dequantise_tiles(codes.data(), scales.data(), tiles, values.data());
  int8_dequantise_twin(codes.subspan(whole), scales.subspan(tiles), values.subspan(whole));
}

std::string_view fast_cpu_target() { return fast_cpu::target_name(); }
#else
void int8_quantise(std::span<const float> values, std::span<std::int8_t> codes, std::span<float> scales) {
  int8_quantise_twin(values, codes, scales);
}

void int8_dequantise(std::span<const std::int8_t> codes, std::span<const float> scales, std::span<float> values) {
  int8_dequantise_twin(codes, scales, values);
}

std::string_view fast_cpu_target() { return "scalar"; }
#endif

}  // namespace shoal
