#pragma once
// The arithmetic of one int8 tile, shared by the scalar twin, the Highway variant and the CUDA kernel, so that all
// three produce the same bits. Symmetric absmax quantisation as in Dettmers et al. 2022 (LLM.int8(), eq. 1),
// block-wise.
//   scale   = absmax / 127          code = round_half_even(x * (127 / absmax))          decoded = code * scale
// Two ends of the range need care, or the stated bound would not hold there:
//   - absmax below 127 * FLT_MIN: the scale would be subnormal, coarse, and lost under flush-to-zero; the tile becomes
//   zeros;
//   - absmax near FLT_MAX: 127 * scale would round up to infinity; the scale is held at kInt8ScaleMax.
// A tile with a NaN or an infinity gets the scale NaN and zero codes: no branch per element, and the reader sees it.
#include <bit>
#include <cstdint>

#if defined(__CUDACC__)
#define SHOAL_HOST_DEVICE __host__ __device__
#else
#define SHOAL_HOST_DEVICE
#endif

namespace shoal {

inline constexpr std::uint32_t kAbsMask = 0x7fffffffu;  // a float's bits without its sign, ordered as its magnitude
inline constexpr std::uint32_t kInfinityBits = 0x7f800000u;  // this and above: infinity or NaN
inline constexpr std::uint32_t kInt8TinyBits = 0x03fe0000u;  // 127 * FLT_MIN; a smaller absmax makes a tile of zeros
inline constexpr float kInt8ScaleMin = 0x1p-126f;            // FLT_MIN: the smallest scale but 0
inline constexpr float kInt8ScaleMax = 0x1.020406p121f;      // the largest s for which 127 * s is finite in fp32
inline constexpr float kInt8TinyMax = 0x1.fcp-120f;          // the float of kInt8TinyBits

struct Int8TileScale {
  float scale;    // stored with the tile
  float inverse;  // what elements are multiplied with; 0 = every code of the tile is 0
};

// `absmax_bits`: the largest (bits & kAbsMask) of the tile.
SHOAL_HOST_DEVICE inline Int8TileScale int8_tile_scale(std::uint32_t absmax_bits) {
#if defined(__CUDA_ARCH__)
  const float nan = __uint_as_float(0x7fc00000u);
  const float absmax = __uint_as_float(absmax_bits);
#else
  const float nan = std::bit_cast<float>(0x7fc00000u);
  const float absmax = std::bit_cast<float>(absmax_bits);
#endif
  if (absmax_bits >= kInfinityBits) return {nan, 0.0f};
  if (absmax_bits < kInt8TinyBits) return {0.0f, 0.0f};
  const float scale = absmax / 127.0f;
  return {scale < kInt8ScaleMax ? scale : kInt8ScaleMax, 127.0f / absmax};
}

}  // namespace shoal
