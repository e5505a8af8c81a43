#pragma once
// The CUDA pair of kernels/adamw.h and of sum_of_squares in kernels/norm.h. Exists only where SHOAL_WITH_CUDA is 1;
// returns the bits of the scalar twins. The launchers only enqueue: no allocation, no synchronisation, no torch. All
// pointers are device memory of the current device and belong to the caller until the stream has passed the launch; no
// alignment is required beyond an element's own. Thread-safe, as far as the stream is.
//
// A step is three launches, and the host need not wait between them: norm_blocks, step_scale, adamw. An unusable
// gradient sum writes nothing; the host reads StepScale when it likes.
#include "common/result.h"
#include "kernels/adamw.h"
#include "kernels/cuda_stream.h"

namespace shoal {

// ERRORS of all: kInput (more than 2^31 - 1 blocks), kUnsupported (the CUDA runtime refused the launch, with its text).

// Sums of squares of values (n), one for each kNormBlock of them -> sums (ceil(n / kNormBlock)). n = 0 does nothing.
Status norm_blocks_cuda(const float* values, std::size_t n, double* sums, CudaStream stream);
// sums (blocks), added in their order, and what follows from them -> scale (1), also where there are no blocks.
// clip_norm = 0 clips nothing. REQUIRES: targets > 0.
Status step_scale_cuda(const double* sums, std::size_t blocks, std::uint64_t targets, double clip_norm,
                       StepScale* scale, CudaStream stream);

// One launch for the whole arena. The gradient's scale comes from `scale`, not from `rates`; where that is not usable
// nothing is written. n = 0 does nothing. REQUIRES: ranges (1 or more) in ascending order, the last one's end is n.
Status adamw_cuda(const AdamWRates& rates, const StepScale* scale, const AdamWRange* ranges, std::size_t range_count,
                  const AdamWFlat& arrays, std::size_t n, CudaStream stream);

}  // namespace shoal
