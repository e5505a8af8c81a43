#include "kernels/packed_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "common/check.h"
#include "kernels/fast_cpu.h"
#include "kernels/packed_rule.h"

namespace shoal {
namespace {

using Tile = std::array<float, kPackedTileElements>;
using Codes = std::array<std::uint32_t, kPackedTileElements>;  // the low bits of each

std::uint32_t absmax_bits_of(const Tile& tile) {
  std::uint32_t most = 0;
  for (const float value : tile) most = std::max(most, bits_of_float(value) & kAbsMask);
  return most;
}

float with_sign(float value, std::uint32_t signs, std::size_t i) {
  return float_of_bits(bits_of_float(value) ^ (signs >> i & 1u) << 31);
}

// H x, halves first.
void transform(Tile& tile) {
  for (std::size_t distance = kPackedTileElements / 2; distance > 0; distance /= 2) {
    for (std::size_t i = 0; i < kPackedTileElements; ++i) {
      if ((i & distance) != 0) continue;
      const float a = tile[i], b = tile[i + distance];
      tile[i] = a + b;
      tile[i + distance] = a - b;
    }
  }
}

std::uint32_t pack_int4(const Tile& tile, Codes& codes) {
  const PackedTileScale rule = int4_tile_scale(TileFormat::kInt4, absmax_bits_of(tile));
  for (std::size_t i = 0; i < tile.size(); ++i) {
    const float code = std::clamp(tile[i] * rule.inverse, -kInt4Levels, kInt4Levels);
    codes[i] = rule.inverse == 0.0f ? 0 : static_cast<std::uint32_t>(std::lrint(code));
  }
  return rule.scale;
}

std::uint32_t pack_int4_hadamard(Tile tile, std::uint64_t key, Codes& codes) {
  if (absmax_bits_of(tile) >= kInfinityBits) {
    codes.fill(0);
    return kHalfNaN;
  }
  for (std::size_t i = 0; i < tile.size(); ++i)
    tile[i] = with_sign(tile[i] * 0.03125f, static_cast<std::uint32_t>(key), i);
  transform(tile);
  const PackedTileScale rule = int4_tile_scale(TileFormat::kInt4Hadamard, absmax_bits_of(tile));
  for (std::uint32_t i = 0; i < tile.size(); ++i) {
    const float drawn = std::clamp(tile[i] * (rule.inverse * kChances), -kDrawnMax, kDrawnMax);
    const std::uint32_t chance = chance_of(tile_draw(static_cast<std::uint32_t>(key >> 32), i % 16), i >= 16);
    const auto code = (static_cast<std::int32_t>(std::lrint(drawn)) + static_cast<std::int32_t>(chance)) >> kChanceBits;
    codes[i] = rule.inverse == 0.0f ? 0 : static_cast<std::uint32_t>(code);
  }
  return rule.scale;
}

std::uint32_t pack_int2(const Tile& tile, Codes& codes) {
  const std::uint32_t absmax_bits = absmax_bits_of(tile);
  const PackedTileScale rule = int2_tile_units(absmax_bits);
  codes.fill(0);
  if (rule.inverse == 0.0f) return rule.scale;
  Tile units;
  for (std::size_t i = 0; i < tile.size(); ++i)
    units[i] = static_cast<float>(std::lrint(std::abs(tile[i]) * rule.inverse));
  float best = 0, least = INFINITY;
  for (int choice = 0; choice < kInt2Choices; ++choice) {
    float error = 0;
    for (const float count : units) error += int2_error(count, int2_units(choice));
    if (error < least) {
      least = error;
      best = int2_units(choice);
    }
  }
  for (std::size_t i = 0; i < tile.size(); ++i)
    codes[i] = (units[i] > 2 * best ? 1u : 0u) | (bits_of_float(tile[i]) >> 31) << 1;
  return int2_tile_scale(absmax_bits, best);
}

// int2 has no level for a zero: zeros behind the tensor's end would count in the choice of its scale.
Tile padded_tile(TileFormat format, std::span<const float> values) {
  Tile tile{};
  for (std::size_t i = 0; i < tile.size(); ++i) {
    if (i < values.size()) tile[i] = values[i];
    if (i >= values.size() && format == TileFormat::kInt2) tile[i] = tile[i - values.size()];
  }
  return tile;
}

std::uint32_t pack_tile(TileFormat format, const Tile& tile, std::uint64_t key, std::uint8_t* bytes) {
  Codes codes;
  if (format == TileFormat::kInt2) {
    const std::uint32_t scale = pack_int2(tile, codes);
    for (std::size_t j = 0; j < 8; ++j)
      bytes[j] = static_cast<std::uint8_t>(codes[j] | codes[j + 8] << 2 | codes[j + 16] << 4 | codes[j + 24] << 6);
    return scale;
  }
  const std::uint32_t scale =
      format == TileFormat::kInt4 ? pack_int4(tile, codes) : pack_int4_hadamard(tile, key, codes);
  for (std::size_t j = 0; j < 16; ++j)
    bytes[j] = static_cast<std::uint8_t>((codes[j] & 15u) | (codes[j + 16] & 15u) << 4);
  return scale;
}

float nibble_at(const std::uint8_t* bytes, std::size_t i) {
  const int nibble = i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4;
  return static_cast<float>((nibble ^ 8) - 8);
}

Tile unpack_tile(TileFormat format, std::uint64_t key, float scale, const std::uint8_t* bytes) {
  Tile tile;
  for (std::size_t i = 0; i < tile.size(); ++i) {
    if (format == TileFormat::kInt2) {
      const int code = bytes[i % 8] >> 2 * (i / 8) & 3;
      tile[i] = ((code & 1) != 0 ? 3.0f : 1.0f) * ((code & 2) != 0 ? -scale : scale);
    } else {
      tile[i] = nibble_at(bytes, i);
    }
  }
  if (format == TileFormat::kInt4Hadamard) transform(tile);  // of whole numbers: exact
  for (std::size_t i = 0; i < tile.size(); ++i) {
    if (format != TileFormat::kInt2) tile[i] *= scale;
    if (format == TileFormat::kInt4Hadamard) tile[i] = with_sign(tile[i], static_cast<std::uint32_t>(key), i);
  }
  return tile;
}

void require_sizes(TileFormat format, std::size_t values, std::size_t scales, std::size_t codes) {
  SHOAL_CHECK_EQ(scales, 2 * packed_tile_count(values));
  SHOAL_CHECK_EQ(codes, packed_tile_bytes(format) * packed_tile_count(values));
}

}  // namespace

void pack_tiles_twin(TileFormat format, TileSeed seed, std::span<const float> values, std::span<std::uint8_t> scales,
                     std::span<std::uint8_t> codes) {
  require_sizes(format, values.size(), scales.size(), codes.size());
  for (std::size_t tile = 0; tile < scales.size() / 2; ++tile) {
    const Tile padded = padded_tile(format, values.subspan(tile * kPackedTileElements));
    const auto scale = static_cast<std::uint16_t>(
        pack_tile(format, padded, tile_key(seed, tile), &codes[tile * packed_tile_bytes(format)]));
    std::memcpy(&scales[2 * tile], &scale, 2);
  }
}

void unpack_tiles_twin(TileFormat format, TileSeed seed, std::span<const std::uint8_t> scales,
                       std::span<const std::uint8_t> codes, std::span<float> values) {
  require_sizes(format, values.size(), scales.size(), codes.size());
  for (std::size_t tile = 0; tile < scales.size() / 2; ++tile) {
    std::uint16_t scale;
    std::memcpy(&scale, &scales[2 * tile], 2);
    const Tile whole =
        unpack_tile(format, tile_key(seed, tile), float_of_bf16(scale), &codes[tile * packed_tile_bytes(format)]);
    const auto part = values.subspan(tile * kPackedTileElements);
    std::copy_n(whole.begin(), std::min(part.size(), kPackedTileElements), part.begin());
  }
}

#if SHOAL_WITH_NET
// The fast variants do whole tiles; what is left is one shorter tile at most.
void pack_tiles(TileFormat format, TileSeed seed, std::span<const float> values, std::span<std::uint8_t> scales,
                std::span<std::uint8_t> codes) {
  require_sizes(format, values.size(), scales.size(), codes.size());
  const std::size_t tiles = values.size() / kPackedTileElements;
  fast_cpu::pack_tiles(format, seed, values.data(), tiles, scales.data(), codes.data());
  pack_tiles_twin(format, {seed.seed, seed.first_tile + tiles}, values.subspan(tiles * kPackedTileElements),
                  scales.subspan(2 * tiles), codes.subspan(tiles * packed_tile_bytes(format)));
}

void unpack_tiles(TileFormat format, TileSeed seed, std::span<const std::uint8_t> scales,
                  std::span<const std::uint8_t> codes, std::span<float> values) {
  require_sizes(format, values.size(), scales.size(), codes.size());
  const std::size_t tiles = values.size() / kPackedTileElements;
  fast_cpu::unpack_tiles(format, seed, scales.data(), codes.data(), tiles, values.data());
  unpack_tiles_twin(format, {seed.seed, seed.first_tile + tiles}, scales.subspan(2 * tiles),
                    codes.subspan(tiles * packed_tile_bytes(format)), values.subspan(tiles * kPackedTileElements));
}
#else
void pack_tiles(TileFormat format, TileSeed seed, std::span<const float> values, std::span<std::uint8_t> scales,
                std::span<std::uint8_t> codes) {
  pack_tiles_twin(format, seed, values, scales, codes);
}

void unpack_tiles(TileFormat format, TileSeed seed, std::span<const std::uint8_t> scales,
                  std::span<const std::uint8_t> codes, std::span<float> values) {
  unpack_tiles_twin(format, seed, scales, codes, values);
}
#endif

}  // namespace shoal
