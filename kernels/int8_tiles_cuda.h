#pragma once
// The CUDA pair of kernels/int8_tiles.h. Exists only where SHOAL_WITH_CUDA is 1; returns the bits of the scalar twin.
// The launchers only enqueue: no allocation, no synchronisation, no torch. All pointers are device memory of the
// current device and belong to the caller until the stream has passed the launch. Thread-safe, as far as the stream is.
#include <cstddef>
#include <cstdint>

#include "common/result.h"
#include "kernels/cuda_stream.h"

namespace shoal {

// values (n) fp32 -> codes (n) int8, scales (ceil(n / 64)) fp32. n = 0 does nothing.
// REQUIRES: values 16-byte aligned, codes 4-byte aligned.
// ERRORS: kInput (alignment, or more than 2^31 - 1 blocks), kUnsupported (the CUDA runtime refused the launch, with its
// text).
Status int8_quantise_cuda(const float* values, std::size_t n, std::int8_t* codes, float* scales, CudaStream stream);
// codes (n), scales (ceil(n / 64)) -> values (n). The same requirements and errors.
Status int8_dequantise_cuda(const std::int8_t* codes, const float* scales, std::size_t n, float* values,
                            CudaStream stream);

}  // namespace shoal
