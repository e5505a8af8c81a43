// A tile belongs to 16 neighbouring lanes; each lane holds 4 consecutive elements: one 16-byte load and one 4-byte
// store.
#include <cuda_runtime.h>

#include <string>

#include "kernels/cuda_kernel.h"
#include "kernels/int8_rule.h"
#include "kernels/int8_tiles.h"
#include "kernels/int8_tiles_cuda.h"

namespace shoal {
namespace {

constexpr unsigned kLanesPerTile = 16;
constexpr unsigned kElementsPerLane = kInt8TileElements / kLanesPerTile;
constexpr unsigned kThreads = 256;
constexpr std::size_t kElementsPerBlock = std::size_t{kThreads} * kElementsPerLane;
static_assert(kElementsPerLane == 4, "a lane loads a float4");

__device__ std::uint32_t magnitude(float value) { return __float_as_uint(value) & kAbsMask; }

__device__ std::uint32_t max4(float4 v) {
  return max(max(magnitude(v.x), magnitude(v.y)), max(magnitude(v.z), magnitude(v.w)));
}

__device__ signed char code_of(float value, float inverse) {
  return inverse == 0.0f ? static_cast<signed char>(0) : static_cast<signed char>(__float2int_rn(value * inverse));
}

// The elements behind n are read as zeros: they do not change a tile's maximum, and are not written.
__device__ float4 load4(const float* values, std::size_t first, std::size_t n) {
  if (first + 4 <= n) return *reinterpret_cast<const float4*>(values + first);
  float4 v{0.0f, 0.0f, 0.0f, 0.0f};
  if (first < n) v.x = values[first];
  if (first + 1 < n) v.y = values[first + 1];
  if (first + 2 < n) v.z = values[first + 2];
  return v;
}

__global__ void quantise(const float* values, std::size_t n, signed char* codes, float* scales) {
  const std::size_t first = (std::size_t{blockIdx.x} * kThreads + threadIdx.x) * kElementsPerLane;
  const float4 v = load4(values, first, n);
  std::uint32_t absmax_bits = max4(v);
  // No lane leaves before this: the shuffles need the whole warp.
  for (unsigned distance = kLanesPerTile / 2; distance > 0; distance /= 2) {
    absmax_bits = max(absmax_bits, __shfl_xor_sync(0xffffffffu, absmax_bits, distance, kLanesPerTile));
  }
  if (first >= n) return;
  const Int8TileScale tile = int8_tile_scale(absmax_bits);
  if (threadIdx.x % kLanesPerTile == 0) scales[first / kInt8TileElements] = tile.scale;
  const char4 c = make_char4(code_of(v.x, tile.inverse), code_of(v.y, tile.inverse), code_of(v.z, tile.inverse),
                             code_of(v.w, tile.inverse));
  if (first + 4 <= n) {
    *reinterpret_cast<char4*>(codes + first) = c;
    return;
  }
  codes[first] = c.x;
  if (first + 1 < n) codes[first + 1] = c.y;
  if (first + 2 < n) codes[first + 2] = c.z;
}

__global__ void dequantise(const signed char* codes, const float* scales, std::size_t n, float* values) {
  const std::size_t first = (std::size_t{blockIdx.x} * kThreads + threadIdx.x) * kElementsPerLane;
  if (first >= n) return;
  const float scale = scales[first / kInt8TileElements];
  if (first + 4 <= n) {
    const char4 c = *reinterpret_cast<const char4*>(codes + first);
    *reinterpret_cast<float4*>(values + first) =
        make_float4(static_cast<float>(c.x) * scale, static_cast<float>(c.y) * scale, static_cast<float>(c.z) * scale,
                    static_cast<float>(c.w) * scale);
    return;
  }
  for (std::size_t i = first; i < n; ++i) values[i] = static_cast<float>(codes[i]) * scale;
}

Result<unsigned> block_count(const float* values, const std::int8_t* codes, std::size_t n) {
  if (!is_aligned_to(values, 16) || !is_aligned_to(codes, 4)) {
    return make_error(ErrorCode::kInput, "int8 tiles on CUDA: values must be 16-byte and codes 4-byte aligned");
  }
  return cuda_blocks("int8 tiles on CUDA", n, kElementsPerBlock);
}

}  // namespace

Status int8_quantise_cuda(const float* values, std::size_t n, std::int8_t* codes, float* scales, CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, block_count(values, codes, n));
  if (blocks == 0) return Status::success();
  return launch("int8_quantise_cuda", blocks, kThreads, stream, quantise, values, n, codes, scales);
}

Status int8_dequantise_cuda(const std::int8_t* codes, const float* scales, std::size_t n, float* values,
                            CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, block_count(values, codes, n));
  if (blocks == 0) return Status::success();
  return launch("int8_dequantise_cuda", blocks, kThreads, stream, dequantise, codes, scales, n, values);
}

}  // namespace shoal
