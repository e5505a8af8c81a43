#pragma once
// The kernels of a training step by what they do, so that whoever queues them need not know whose they are: CUDA's
// (kernels/accumulate_cuda.h, kernels/adamw_cuda.h: contracts and errors stand there), or the twins' in tests. A plain
// table: static storage, nothing to free.
#include "common/result.h"
#include "kernels/accumulate.h"
#include "kernels/adamw.h"
#include "kernels/cuda_stream.h"

namespace shoal {

struct StepKernels {
  Status (*begin_screen)(NonFinite* screen, CudaStream stream);
  Status (*screen)(const float* values, std::size_t n, std::uint64_t index, NonFinite* screen, CudaStream stream);
  Status (*accumulate_unless)(const NonFinite* screen, float* sum, const float* gradient, std::size_t n, float sign,
                              CudaStream stream);
  Status (*norm_blocks)(const float* values, std::size_t n, double* sums, CudaStream stream);
  Status (*step_scale)(const double* sums, std::size_t blocks, std::uint64_t targets, double clip_norm,
                       StepScale* scale, CudaStream stream);
  Status (*adamw)(const AdamWRates& rates, const StepScale* scale, const AdamWRange* ranges, std::size_t range_count,
                  const AdamWFlat& arrays, std::size_t n, CudaStream stream);
};

// Null: this build has no CUDA kernels.
const StepKernels* cuda_step_kernels();

}  // namespace shoal
