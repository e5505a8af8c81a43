#pragma once
// The arithmetic of one tile of 32 in fewer than 8 bits, shared by the scalar twin, the Highway variant and the CUDA
// kernel, so that all three produce the same bits: there is no sum of rounded products that a compiler may fuse, and
// what is added in another order is exact. Scales are bf16: half of an fp32's bytes and its whole range, which
// gradients need (fp16's smallest normal number is 6e-5).
//   int4           code = round_half_even(x / scale) in [-7, 7], scale = absmax / 7 rounded up
//   int4-hadamard  y = H D x / 32, where D flips signs and H is the Hadamard matrix of +-1 in Sylvester's order; y is
//                  coded as int4 is, but each code is rounded up or down by chance, so that its mean is y / scale.
//                  decoded = D H (code * scale). As in Suresh et al. 2017, Distributed Mean Estimation with Limited
//                  Communication.
//   int2           (2 k - 3) * scale: four levels; the scale is the one of four that gives the least squared error
// As in kernels/int8_rule.h a tile of magnitudes too small for a scale becomes zeros (scale 0), one with a NaN or an
// infinity gets the scale NaN; and a scale is held where a decoded value would not be finite.
#include "kernels/half_rule.h"
#include "kernels/packed_tiles.h"

namespace shoal {

struct PackedTileScale {
  std::uint32_t scale;  // bf16
  float inverse;        // what elements are multiplied with; 0 = every code of the tile is 0
};

struct PackedRange {
  std::uint32_t tiny;                  // fp32 bits: a smaller absmax makes a tile of zeros
  std::uint32_t scale_min, scale_max;  // bf16, of the scales but 0
};

SHOAL_HOST_DEVICE constexpr PackedRange packed_range(TileFormat format) {
  switch (format) {
    case TileFormat::kInt4:  // 7 * 2^-126; from 2^-126, to where 8 * scale is finite
      return {0x01e00000u, 0x0080u, 0x7dffu};
    case TileFormat::kInt4Hadamard:  // 7 * 2^-110; from 2^-110, to where 32 * 8 * scale is finite
      return {0x09e00000u, 0x0880u, 0x7b7fu};
    case TileFormat::kInt2:  // 240 * 2^-126; from 32 * 2^-126, to where 3 * scale is finite
      return {0x04700000u, 0x0300u, 0x7eaau};
  }
  return {};
}

inline constexpr float kInt4Levels = 7.0f;  // on either side of 0

// For int4 and int4-hadamard. `absmax_bits`: the largest (bits & kAbsMask) of what is coded.
SHOAL_HOST_DEVICE inline PackedTileScale int4_tile_scale(TileFormat format, std::uint32_t absmax_bits) {
  const PackedRange range = packed_range(format);
  if (absmax_bits >= kInfinityBits) return {kHalfNaN, 0.0f};
  if (absmax_bits < range.tiny) return {0, 0.0f};
  const std::uint32_t up = (bits_of_float(float_of_bits(absmax_bits) / kInt4Levels) + 0xffffu) >> 16;
  const std::uint32_t scale = up < range.scale_max ? up : range.scale_max;
  return {scale, 1.0f / float_of_bf16(scale)};
}

// The random bits of a tile: below, the signs of D; above, the key of the rounding. SplitMix64 (Steele et al. 2014).
SHOAL_HOST_DEVICE inline std::uint64_t tile_key(TileSeed seed, std::uint64_t tile) {
  std::uint64_t key = seed.seed + (seed.first_tile + tile + 1) * 0x9e3779b97f4a7c15ull;
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ull;
  key = (key ^ key >> 27) * 0x94d049bb133111ebull;
  return key ^ key >> 31;
}

// One draw serves the elements j and j + 16: 12 bits each. Constants of MurmurHash3's finaliser.
inline constexpr std::uint32_t kDrawStep = 0x9e3779b9u, kDrawFirst = 0x85ebca6bu, kDrawSecond = 0xc2b2ae35u;
SHOAL_HOST_DEVICE inline std::uint32_t tile_draw(std::uint32_t key, std::uint32_t j) {
  std::uint32_t draw = key + (j + 1) * kDrawStep;
  draw = (draw ^ draw >> 16) * kDrawFirst;
  draw = (draw ^ draw >> 13) * kDrawSecond;
  return draw ^ draw >> 16;
}
SHOAL_HOST_DEVICE inline std::uint32_t chance_of(std::uint32_t draw, bool second_half) {
  return second_half ? draw >> 20 : draw & 0xfffu;
}
inline constexpr float kChances = 4096.0f;                  // codes are drawn in units of 1 / this
inline constexpr float kDrawnMax = kInt4Levels * kChances;  // fits 16 bits
inline constexpr int kChanceBits = 12;

// int2: magnitudes are first counted in 240ths of absmax, so that errors are whole numbers, whatever the order of a
// sum.
inline constexpr float kInt2Units = 240.0f;
inline constexpr int kInt2Choices = 4;
SHOAL_HOST_DEVICE constexpr float int2_units(int choice) {  // the inner level of a choice
  return choice == 0 ? 80.0f : choice == 1 ? 64.0f : choice == 2 ? 48.0f : 32.0f;
}
SHOAL_HOST_DEVICE inline float int2_error(float units, float inner) {  // squared; exact
  const float error = units - (units > 2 * inner ? 3 * inner : inner);
  return error * error;
}
// What magnitudes are multiplied with to be units; 0 = every code of the tile is 0 and `scale` says why.
SHOAL_HOST_DEVICE inline PackedTileScale int2_tile_units(std::uint32_t absmax_bits) {
  if (absmax_bits >= kInfinityBits) return {kHalfNaN, 0.0f};
  if (absmax_bits < packed_range(TileFormat::kInt2).tiny) return {0, 0.0f};
  return {0, kInt2Units / float_of_bits(absmax_bits)};
}
SHOAL_HOST_DEVICE inline std::uint32_t int2_tile_scale(std::uint32_t absmax_bits, float inner) {
  const std::uint32_t scale = bf16_of(float_of_bits(absmax_bits) / (kInt2Units / inner));
  const std::uint32_t most = packed_range(TileFormat::kInt2).scale_max;
  return scale < most ? scale : most;
}

}  // namespace shoal
