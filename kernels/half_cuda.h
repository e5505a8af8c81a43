#pragma once
// The CUDA pair of kernels/half.h. Exists only where SHOAL_WITH_CUDA is 1; returns the bits of the scalar twin.
// The launchers only enqueue: no allocation, no synchronisation, no torch. All pointers are device memory of the
// current device and belong to the caller until the stream has passed the launch. Thread-safe, as far as the stream is.
#include <cstddef>
#include <cstdint>

#include "common/result.h"
#include "kernels/cuda_stream.h"
#include "kernels/half.h"

namespace shoal {

// values (n) fp32 -> halves (n). What is not finite shows as NaN. n = 0 does nothing.
// REQUIRES: values 16-byte aligned, halves 8-byte aligned.
// ERRORS: kInput (alignment, or more than 2^31 - 1 blocks), kUnsupported (the CUDA runtime refused the launch, with its
// text).
Status narrow_to_half_cuda(HalfFormat format, const float* values, std::size_t n, std::uint16_t* halves,
                           CudaStream stream);
// halves (n) -> values (n). The same requirements and errors.
Status widen_half_cuda(HalfFormat format, const std::uint16_t* halves, std::size_t n, float* values, CudaStream stream);

}  // namespace shoal
