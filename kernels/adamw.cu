#include <cuda_runtime.h>

#include "kernels/adamw_cuda.h"
#include "kernels/adamw_rule.h"
#include "kernels/cuda_kernel.h"
#include "kernels/norm_rule.h"

namespace shoal {
namespace {

constexpr unsigned kAll = 0xffffffffu;

// ---- The norm: a group of kNormLanes threads has a block of kNormBlock elements
constexpr unsigned kNormThreads = 256;
constexpr std::size_t kNormBlocks = kNormThreads / kNormLanes;  // of a CUDA block
static_assert(32 % kNormLanes == 0, "a group lies within a warp");

__global__ void norm_blocks(const float* values, std::size_t n, double* sums) {
  const unsigned lane = threadIdx.x % kNormLanes;
  const std::size_t block = blockIdx.x * kNormBlocks + threadIdx.x / kNormLanes;
  const std::size_t first = block * kNormBlock, end = first + kNormBlock < n ? first + kNormBlock : n;
  double own = 0;
  for (std::size_t i = first + lane; i < end; i += kNormLanes) own = norm_added(own, values[i], values[i]);
  double sum = 0;
  for (unsigned other = 0; other < kNormLanes; ++other) sum += __shfl_sync(kAll, own, other, kNormLanes);
  if (lane == 0 && first < n) sums[block] = sum;
}

// One CUDA block: its threads fetch, the first one adds in order.
__global__ void scale_of_sums(const double* sums, std::size_t count, std::uint64_t targets, double clip_norm,
                              StepScale* scale) {
  __shared__ double fetched[kNormThreads];
  double total = 0;
  for (std::size_t first = 0; first < count; first += kNormThreads) {
    const std::size_t here = count - first < kNormThreads ? count - first : kNormThreads;
    if (threadIdx.x < here) fetched[threadIdx.x] = sums[first + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
      for (std::size_t i = 0; i < here; ++i) total += fetched[i];
    __syncthreads();  // before the next ones are fetched into the same place
  }
  if (threadIdx.x == 0) *scale = step_scale(total, targets, clip_norm);
}

// ---- The step: kPerThread elements a thread, neighbouring lanes beside each other
constexpr unsigned kThreads = 256;
constexpr unsigned kPerThread = 4;
constexpr std::size_t kPerBlock = std::size_t{kThreads} * kPerThread;

// The first range that ends behind `element`.
__device__ std::size_t range_at(const AdamWRange* ranges, std::size_t count, std::size_t element) {
  std::size_t low = 0;
  while (count > 0) {
    const std::size_t half = count / 2;
    if (ranges[low + half].end <= element) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

template <bool kGivesBack>
__global__ void adamw(AdamWRates rates, const StepScale* scale, const AdamWRange* ranges, std::size_t range_count,
                      AdamWFlat a, std::size_t n) {
  __shared__ std::size_t first_range;
  if (scale->usable == 0) return;  // all threads of all blocks
  const std::size_t first = blockIdx.x * kPerBlock;
  if (threadIdx.x == 0) first_range = range_at(ranges, range_count, first);
  __syncthreads();
  std::size_t range = first_range;
  rates.gradient_scale = scale->gradient_scale;
  for (unsigned k = 0; k < kPerThread; ++k) {
    const std::size_t i = first + k * kThreads + threadIdx.x;
    if (i >= n) return;
    while (ranges[range].end <= i) ++range;
    if (ranges[range].skipped != 0) continue;
    adamw_element<kGivesBack>(rates, ranges[range].keep, a, i);
  }
}

}  // namespace

Status norm_blocks_cuda(const float* values, std::size_t n, double* sums, CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, cuda_blocks("norm_blocks_cuda", n, kNormBlocks * kNormBlock));
  if (blocks == 0) return Status::success();
  return launch("norm_blocks_cuda", blocks, kNormThreads, stream, norm_blocks, values, n, sums);
}

Status step_scale_cuda(const double* sums, std::size_t blocks, std::uint64_t targets, double clip_norm,
                       StepScale* scale, CudaStream stream) {
  return launch("step_scale_cuda", 1, kNormThreads, stream, scale_of_sums, sums, blocks, targets, clip_norm, scale);
}

Status adamw_cuda(const AdamWRates& rates, const StepScale* scale, const AdamWRange* ranges, std::size_t range_count,
                  const AdamWFlat& arrays, std::size_t n, CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, cuda_blocks("adamw_cuda", n, kPerBlock));
  if (blocks == 0) return Status::success();
  const auto kernel = rates.rate_before == 0 ? adamw<false> : adamw<true>;
  return launch("adamw_cuda", blocks, kThreads, stream, kernel, rates, scale, ranges, range_count, arrays, n);
}

}  // namespace shoal
