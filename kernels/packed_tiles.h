#pragma once
// fp32 <-> tiles of 32 consecutive elements in 4 or 2 bits each, with one bf16 scale; the rules: kernels/packed_rule.h.
// A shorter last tile is coded as one that ends in zeros (int2: as one whose elements repeat) and takes as many bytes
// as the others.
//
// Codes of a tile: 4 bits (two's complement): byte j holds element j below and j + 16 above. 2 bits (bit 0: the outer
// level, bit 1: the sign): byte j holds the elements j, j + 8, j + 16, j + 24, from below.
//
// Bounds, for finite input whose tile's scale is not held: int4 |x - decoded| <= 0.5001 * scale; int4-hadamard
// |y - code * scale| <= scale for the rotated y; int2 |x - decoded| <= 0.61 * absmax of the tile.
//
// Thread-safe: no state. Ownership: borrows all spans for the call; input and output must not overlap. Errors: none; a
// non-finite input shows as a NaN scale. Decoded values of any codes are finite when every scale is 0 or within
// packed_range. REQUIRES (all four): scales of 2 bytes and codes of packed_tile_bytes for each tile of values.
#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal {

enum class TileFormat : std::uint8_t { kInt4, kInt4Hadamard, kInt2 };

inline constexpr std::size_t kPackedTileElements = 32;
constexpr std::size_t packed_tile_bytes(TileFormat format) { return format == TileFormat::kInt2 ? 8 : 16; }  // of codes
constexpr std::size_t packed_tile_count(std::size_t elements) {
  return elements / kPackedTileElements + (elements % kPackedTileElements != 0 ? 1 : 0);
}

// What is random in int4-hadamard follows from it alone; the others do not look at it. A tensor may be coded in pieces:
// `first_tile` is the number of the first one in it.
struct TileSeed {
  std::uint64_t seed = 0;
  std::uint64_t first_tile = 0;
};

// values (n) -> scales (2 bytes a tile, bf16 little-endian), codes.
void pack_tiles(TileFormat format, TileSeed seed, std::span<const float> values, std::span<std::uint8_t> scales,
                std::span<std::uint8_t> codes);
// scales, codes -> values (n).
void unpack_tiles(TileFormat format, TileSeed seed, std::span<const std::uint8_t> scales,
                  std::span<const std::uint8_t> codes, std::span<float> values);

// The scalar twins: the specification. The two above return the same bits.
void pack_tiles_twin(TileFormat format, TileSeed seed, std::span<const float> values, std::span<std::uint8_t> scales,
                     std::span<std::uint8_t> codes);
void unpack_tiles_twin(TileFormat format, TileSeed seed, std::span<const std::uint8_t> scales,
                       std::span<const std::uint8_t> codes, std::span<float> values);

}  // namespace shoal
