#include <cuda_runtime.h>

#include "kernels/cuda_kernel.h"
#include "tests/kernels/cuda_on_host/wrong_kernels.h"

namespace shoal::cuda_on_host {
namespace {

constexpr unsigned kAll = 0xffffffffu;

__device__ std::size_t place() { return std::size_t{blockIdx.x} * kBlockThreads + threadIdx.x; }

template <bool kWrong>
__global__ void tail(const float* in, std::size_t n, float* out) {
  const std::size_t i = place();
  if (i < n) out[i] = in[i];
  if (kWrong && i == n) out[i] = 0;
}

template <bool kWrong>
__global__ void vector_tail(const float* in, std::size_t n, float* out) {
  const std::size_t first = 4 * place();
  if (first >= n) return;
  if (kWrong || first + 4 <= n) {
    const float4 v = *reinterpret_cast<const float4*>(in + first);
    out[first] = v.x;
    if (first + 1 < n) out[first + 1] = v.y;
    if (first + 2 < n) out[first + 2] = v.z;
    if (first + 3 < n) out[first + 3] = v.w;
    return;
  }
  for (std::size_t i = first; i < n; ++i) out[i] = in[i];
}

// Turned twice in one place.
template <bool kWrong>
__global__ void no_barrier(const float* in, std::size_t n, float* out) {
  __shared__ float turned[kBlockThreads];
  const std::size_t i = place();
  float value = i < n ? in[i] : 0;
  for (int turn = 0; turn < 2; ++turn) {
    turned[kBlockThreads - 1 - threadIdx.x] = value;
    __syncthreads();
    value = turned[threadIdx.x];
    if (!kWrong) __syncthreads();
  }
  if (i < n) out[i] = value;
}

template <bool kWrong>
__global__ void no_sync_warp(const float* in, std::size_t n, float* out) {
  __shared__ float swapped[kBlockThreads];
  const std::size_t i = place();
  swapped[threadIdx.x ^ 1] = i < n ? in[i] : 0;
  if (!kWrong) __syncwarp();
  if (i < n) out[i] = swapped[threadIdx.x];
}

template <bool kWrong>
__global__ void nobody_wrote(const float* in, std::size_t n, float* out) {
  __shared__ float most[2];
  if (threadIdx.x < (kWrong ? 1 : 2)) most[threadIdx.x] = 1;
  __syncthreads();
  if (place() < n) out[place()] = in[place()] * most[threadIdx.x / 32];
}

template <bool kWrong>
__global__ void barrier_in_branch(const float* in, std::size_t n, float* out) {
  const std::size_t i = place();
  if (kWrong && i >= n) return;
  __syncthreads();
  if (i < n) out[i] = in[i];
}

template <bool kWrong>
__global__ void leaves_early(const float* in, std::size_t n, float* out) {
  const std::size_t i = place();
  if (kWrong && i >= n) return;
  const float next = __shfl_down_sync(kAll, i < n ? in[i] : 0.0f, 1);
  if (i < n) out[i] = next;
}

template <bool kWrong>
__global__ void lane_takes_no_part(const float* in, std::size_t n, float* out) {
  const std::size_t i = place();
  if (threadIdx.x % 32 >= 8) {
    if (i < n) out[i] = in[i];
    return;
  }
  const float other = __shfl_xor_sync(0xffu, i < n ? in[i] : 0.0f, kWrong ? 8 : 4);
  if (i < n) out[i] = other;
}

template <bool kWrong>
__global__ void wrong_lane(const float* in, std::size_t n, float* out) {
  const std::size_t i = place();
  float sum = i < n ? in[i] : 0;
  for (unsigned distance = kWrong ? 8 : 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAll, sum, distance);
  if (i < n) out[i] = sum;
}

template <bool kWrong>
__global__ void two_blocks(const float* in, std::size_t n, float* out) {
  const std::size_t i = place();
  if (i < n) out[kWrong ? threadIdx.x : i] = in[i];
}

template <bool kWrong>
__global__ void alignment(const float* in, std::size_t n, float* out) {
  const std::size_t first = 4 * place();
  if (first + 8 > n) return;
  const float4 v = *reinterpret_cast<const float4*>(in + first + (kWrong ? 1 : 4));
  out[first] = v.x + v.y + v.z + v.w;
}

template <bool kWrong>
__global__ void order(const float* in, std::size_t n, float* out) {
  const std::size_t i = place();
  if (i < n) atomicAdd(out, kWrong ? in[i] : 1.0f);
}

using Copy = void(const float* in, std::size_t n, float* out);
template <bool kWrong>
Copy* kernel_of(Mistake mistake) {
  switch (mistake) {
    case Mistake::kTail:
      return tail<kWrong>;
    case Mistake::kVectorTail:
      return vector_tail<kWrong>;
    case Mistake::kNoBarrier:
      return no_barrier<kWrong>;
    case Mistake::kNoSyncWarp:
      return no_sync_warp<kWrong>;
    case Mistake::kNobodyWrote:
      return nobody_wrote<kWrong>;
    case Mistake::kBarrierInBranch:
      return barrier_in_branch<kWrong>;
    case Mistake::kLeavesEarly:
      return leaves_early<kWrong>;
    case Mistake::kLaneTakesNoPart:
      return lane_takes_no_part<kWrong>;
    case Mistake::kWrongLane:
      return wrong_lane<kWrong>;
    case Mistake::kTwoBlocks:
      return two_blocks<kWrong>;
    case Mistake::kAlignment:
      return alignment<kWrong>;
    case Mistake::kOrder:
      return order<kWrong>;
  }
  return nullptr;
}

}  // namespace

Status run_kernel(Mistake mistake, bool wrong, const float* in, std::size_t n, float* out) {
  SHOAL_ASSIGN(const unsigned blocks, cuda_blocks("run_kernel", n + 1, kBlockThreads));
  Copy* const kernel = wrong ? kernel_of<true>(mistake) : kernel_of<false>(mistake);
  return launch("run_kernel", blocks, kBlockThreads, nullptr, kernel, in, n, out);
}

}  // namespace shoal::cuda_on_host
