#pragma once
// The CUDA pair of kernels/accumulate.h. Exists only where SHOAL_WITH_CUDA is 1; returns the bits of the scalar twin.
// The launchers only enqueue: no allocation, no synchronisation, no torch. All pointers are device memory of the
// current device and belong to the caller until the stream has passed the launch; no alignment is required beyond an
// element's own. Thread-safe, as far as the stream is.
//
// All of a gradient is screened before any of it is added, and the host learns of neither until it reads the screen:
//   begin_screen, screen for each of the gradient's tensors, accumulate_unless for each of them.
#include "kernels/accumulate.h"
#include "kernels/cuda_stream.h"

namespace shoal {

// ERRORS of all: kInput (more than 2^31 - 1 blocks), kUnsupported (the CUDA runtime refused the launch, with its text).

// `screen` as if nothing had been looked at.
Status begin_screen_cuda(NonFinite* screen, CudaStream stream);
// What is not finite in values (n), added to what `screen` has found; values[0] counts as element `index`. n = 0 does
// nothing.
Status screen_cuda(const float* values, std::size_t n, std::uint64_t index, NonFinite* screen, CudaStream stream);
// sum (n) += sign * gradient (n), or nothing when `screen` has found something. n = 0 does nothing.
// REQUIRES: sign is +1 or -1; sum and gradient do not overlap.
Status accumulate_unless_cuda(const NonFinite* screen, float* sum, const float* gradient, std::size_t n, float sign,
                              CudaStream stream);

}  // namespace shoal
