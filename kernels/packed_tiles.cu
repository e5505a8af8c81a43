// A tile belongs to a warp, an element to a lane. No lane leaves before the last shuffle, which needs the whole warp.
#include <cuda_runtime.h>

#include <string>

#include "kernels/cuda_kernel.h"
#include "kernels/packed_rule.h"
#include "kernels/packed_tiles_cuda.h"

namespace shoal {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kThreads = 256;
constexpr unsigned kTilesPerBlock = kThreads / kWarp;
constexpr unsigned kAll = 0xffffffffu;
static_assert(kPackedTileElements == kWarp);
template <TileFormat kFormat>
constexpr unsigned kCodeBytes = packed_tile_bytes(kFormat);

__device__ std::uint32_t absmax_bits_of(float value) {
  std::uint32_t most = __float_as_uint(value) & kAbsMask;
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
    most = max(most, __shfl_xor_sync(kAll, most, distance));
  return most;
}

__device__ float sum_of(float value) {  // of whole numbers: exact
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(kAll, value, distance);
  return value;
}

__device__ float with_sign(float value, std::uint32_t signs, unsigned lane) {
  return __uint_as_float(__float_as_uint(value) ^ (signs >> lane & 1u) << 31);
}

// H x, halves first.
__device__ float transformed(float value, unsigned lane) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAll, value, distance);
    value = (lane & distance) != 0 ? other - value : value + other;
  }
  return value;
}

struct Coded {
  std::uint32_t scale;  // the same in all lanes
  std::uint32_t code;
};

__device__ Coded int4_code(float value) {
  const PackedTileScale rule = int4_tile_scale(TileFormat::kInt4, absmax_bits_of(value));
  if (rule.inverse == 0.0f) return {rule.scale, 0};
  const float code = fminf(fmaxf(__fmul_rn(value, rule.inverse), -kInt4Levels), kInt4Levels);
  return {rule.scale, static_cast<std::uint32_t>(__float2int_rn(code))};
}

__device__ Coded int4_hadamard_code(float value, std::uint64_t key, unsigned lane) {
  if (absmax_bits_of(value) >= kInfinityBits) return {kHalfNaN, 0};
  value = transformed(with_sign(__fmul_rn(value, 0.03125f), static_cast<std::uint32_t>(key), lane), lane);
  const PackedTileScale rule = int4_tile_scale(TileFormat::kInt4Hadamard, absmax_bits_of(value));
  if (rule.inverse == 0.0f) return {rule.scale, 0};
  const float drawn = fminf(fmaxf(__fmul_rn(value, rule.inverse * kChances), -kDrawnMax), kDrawnMax);
  const std::uint32_t chance = chance_of(tile_draw(static_cast<std::uint32_t>(key >> 32), lane % 16), lane >= 16);
  return {rule.scale, static_cast<std::uint32_t>((__float2int_rn(drawn) + static_cast<int>(chance)) >> kChanceBits)};
}

__device__ Coded int2_code(float value) {
  const std::uint32_t absmax_bits = absmax_bits_of(value);
  const PackedTileScale rule = int2_tile_units(absmax_bits);
  if (rule.inverse == 0.0f) return {rule.scale, 0};
  const float units = static_cast<float>(__float2int_rn(__fmul_rn(fabsf(value), rule.inverse)));
  float best = 0, least = 0;
  for (int choice = 0; choice < kInt2Choices; ++choice) {
    const float error = sum_of(int2_error(units, int2_units(choice)));
    if (choice > 0 && error >= least) continue;
    least = error;
    best = int2_units(choice);
  }
  const std::uint32_t code = (units > 2 * best ? 1u : 0u) | (__float_as_uint(value) >> 31) << 1;
  return {int2_tile_scale(absmax_bits, best), code};
}

template <TileFormat kFormat>
__global__ void pack(TileSeed seed, const float* values, std::size_t n, std::uint16_t* scales, std::uint8_t* codes) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t tile = std::size_t{blockIdx.x} * kTilesPerBlock + threadIdx.x / kWarp;
  const std::size_t at = tile * kWarp + lane;
  if (tile * kWarp >= n) return;  // the whole warp
  float value = at < n ? values[at] : 0.0f;
  if (kFormat == TileFormat::kInt2 && at >= n) value = values[tile * kWarp + lane % (n - tile * kWarp)];  // as the twin
  Coded coded;
  if constexpr (kFormat == TileFormat::kInt4) coded = int4_code(value);
  if constexpr (kFormat == TileFormat::kInt4Hadamard) coded = int4_hadamard_code(value, tile_key(seed, tile), lane);
  if constexpr (kFormat == TileFormat::kInt2) coded = int2_code(value);
  constexpr unsigned kBytes = kCodeBytes<kFormat>;
  constexpr unsigned kBits = 8 * kBytes / kWarp;
  std::uint32_t byte = 0;
  for (unsigned part = 0; part < kWarp / kBytes; ++part) {
    const std::uint32_t code = __shfl_sync(kAll, coded.code, lane + part * kBytes);
    byte |= (code & ((1u << kBits) - 1)) << part * kBits;
  }
  if (lane < kBytes) codes[tile * kBytes + lane] = static_cast<std::uint8_t>(byte);
  if (lane == 0) scales[tile] = static_cast<std::uint16_t>(coded.scale);
}

template <TileFormat kFormat>
__global__ void unpack(TileSeed seed, const std::uint16_t* scales, const std::uint8_t* codes, std::size_t n,
                       float* values) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t tile = std::size_t{blockIdx.x} * kTilesPerBlock + threadIdx.x / kWarp;
  const std::size_t at = tile * kWarp + lane;
  if (tile * kWarp >= n) return;  // the whole warp
  constexpr unsigned kBytes = kCodeBytes<kFormat>;
  constexpr unsigned kBits = 8 * kBytes / kWarp;
  const int code = codes[tile * kBytes + lane % kBytes] >> lane / kBytes * kBits & ((1 << kBits) - 1);
  const float scale = float_of_bf16(scales[tile]);
  float value;
  if constexpr (kFormat == TileFormat::kInt2) {
    value = ((code & 1) != 0 ? 3.0f : 1.0f) * ((code & 2) != 0 ? -scale : scale);
  } else {
    value = static_cast<float>((code ^ 8) - 8);
    if constexpr (kFormat == TileFormat::kInt4Hadamard) value = transformed(value, lane);
    value *= scale;
    if constexpr (kFormat == TileFormat::kInt4Hadamard)
      value = with_sign(value, static_cast<std::uint32_t>(tile_key(seed, tile)), lane);
  }
  if (at < n) values[at] = value;
}

Result<unsigned> block_count(const char* kernel, const float* values, const std::uint16_t* scales, std::size_t n) {
  if (!is_aligned_to(values, 4) || !is_aligned_to(scales, 2))
    return make_error(ErrorCode::kInput, std::string(kernel) + ": values must be 4-byte and scales 2-byte aligned");
  return cuda_blocks(kernel, n, std::size_t{kTilesPerBlock} * kWarp);
}

template <class Kernel>
Kernel* kernel_of(TileFormat format, Kernel* int4, Kernel* int4_hadamard, Kernel* int2) {
  return format == TileFormat::kInt4 ? int4 : format == TileFormat::kInt4Hadamard ? int4_hadamard : int2;
}

}  // namespace

Status pack_tiles_cuda(TileFormat format, TileSeed seed, const float* values, std::size_t n, std::uint16_t* scales,
                       std::uint8_t* codes, CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, block_count("pack_tiles_cuda", values, scales, n));
  if (blocks == 0) return Status::success();
  const auto kernel =
      kernel_of(format, pack<TileFormat::kInt4>, pack<TileFormat::kInt4Hadamard>, pack<TileFormat::kInt2>);
  return launch("pack_tiles_cuda", blocks, kThreads, stream, kernel, seed, values, n, scales, codes);
}

Status unpack_tiles_cuda(TileFormat format, TileSeed seed, const std::uint16_t* scales, const std::uint8_t* codes,
                         std::size_t n, float* values, CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, block_count("unpack_tiles_cuda", values, scales, n));
  if (blocks == 0) return Status::success();
  const auto kernel =
      kernel_of(format, unpack<TileFormat::kInt4>, unpack<TileFormat::kInt4Hadamard>, unpack<TileFormat::kInt2>);
  return launch("unpack_tiles_cuda", blocks, kThreads, stream, kernel, seed, scales, codes, n, values);
}

}  // namespace shoal
