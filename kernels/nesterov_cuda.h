#pragma once
// The CUDA pair of kernels/nesterov.h. Exists only where SHOAL_WITH_CUDA is 1; returns the bits of the scalar twin. The
// launcher only enqueues: no allocation, no synchronisation, no torch. All arrays are device memory of the current
// device and belong to the caller until the stream has passed the launch; no alignment is required beyond an element's
// own. Thread-safe, as far as the stream is. Whether the outcome is finite: kernels/accumulate_cuda.h, screen_cuda.
#include "common/result.h"
#include "kernels/cuda_stream.h"
#include "kernels/nesterov.h"

namespace shoal {

// Does nothing where there are no elements. REQUIRES: arrays of one length. ERRORS: kInput (more than 2^31 - 1 blocks),
// kUnsupported (the CUDA runtime refused the launch, with its text).
Status nesterov_cuda(const NesterovRates& rates, const NesterovArrays& arrays, CudaStream stream);

}  // namespace shoal
