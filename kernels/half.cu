// Each lane holds 4 consecutive elements: one 16-byte load and one 8-byte store.
#include <cuda_runtime.h>

#include <string>

#include "kernels/cuda_kernel.h"
#include "kernels/half_cuda.h"
#include "kernels/half_rule.h"

namespace shoal {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kElementsPerLane = 4;

template <HalfFormat kFormat>
__device__ std::uint16_t half_of(float value) {
  return kFormat == HalfFormat::kBf16 ? bf16_of(value) : fp16_of(value);
}
template <HalfFormat kFormat>
__device__ float float_of(std::uint32_t half) {
  return kFormat == HalfFormat::kBf16 ? float_of_bf16(half) : float_of_fp16(half);
}

template <HalfFormat kFormat>
__global__ void narrow(const float* values, std::size_t n, std::uint16_t* halves) {
  const std::size_t first = (std::size_t{blockIdx.x} * kThreads + threadIdx.x) * kElementsPerLane;
  if (first + kElementsPerLane <= n) {
    const float4 v = *reinterpret_cast<const float4*>(values + first);
    *reinterpret_cast<ushort4*>(halves + first) =
        make_ushort4(half_of<kFormat>(v.x), half_of<kFormat>(v.y), half_of<kFormat>(v.z), half_of<kFormat>(v.w));
    return;
  }
  for (std::size_t i = first; i < n; ++i) halves[i] = half_of<kFormat>(values[i]);
}

template <HalfFormat kFormat>
__global__ void widen(const std::uint16_t* halves, std::size_t n, float* values) {
  const std::size_t first = (std::size_t{blockIdx.x} * kThreads + threadIdx.x) * kElementsPerLane;
  if (first + kElementsPerLane <= n) {
    const ushort4 h = *reinterpret_cast<const ushort4*>(halves + first);
    *reinterpret_cast<float4*>(values + first) =
        make_float4(float_of<kFormat>(h.x), float_of<kFormat>(h.y), float_of<kFormat>(h.z), float_of<kFormat>(h.w));
    return;
  }
  for (std::size_t i = first; i < n; ++i) values[i] = float_of<kFormat>(halves[i]);
}

Result<unsigned> block_count(const char* kernel, const float* values, const std::uint16_t* halves, std::size_t n) {
  if (!is_aligned_to(values, 16) || !is_aligned_to(halves, 8)) {
    return make_error(ErrorCode::kInput, std::string(kernel) + ": values must be 16-byte and halves 8-byte aligned");
  }
  return cuda_blocks(kernel, n, std::size_t{kThreads} * kElementsPerLane);
}

}  // namespace

Status narrow_to_half_cuda(HalfFormat format, const float* values, std::size_t n, std::uint16_t* halves,
                           CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, block_count("narrow_to_half_cuda", values, halves, n));
  if (blocks == 0) return Status::success();
  const auto kernel = format == HalfFormat::kBf16 ? narrow<HalfFormat::kBf16> : narrow<HalfFormat::kFp16>;
  return launch("narrow_to_half_cuda", blocks, kThreads, stream, kernel, values, n, halves);
}

Status widen_half_cuda(HalfFormat format, const std::uint16_t* halves, std::size_t n, float* values,
                       CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, block_count("widen_half_cuda", values, halves, n));
  if (blocks == 0) return Status::success();
  const auto kernel = format == HalfFormat::kBf16 ? widen<HalfFormat::kBf16> : widen<HalfFormat::kFp16>;
  return launch("widen_half_cuda", blocks, kThreads, stream, kernel, halves, n, values);
}

}  // namespace shoal
