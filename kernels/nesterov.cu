#include <cuda_runtime.h>

#include "kernels/cuda_kernel.h"
#include "kernels/nesterov_cuda.h"
#include "kernels/nesterov_rule.h"

namespace shoal {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kPerThread = 4;
constexpr std::size_t kPerBlock = std::size_t{kThreads} * kPerThread;

__global__ void nesterov(NesterovRates rates, const float* anchor, const float* momentum, const float* delta,
                         std::size_t n, float* anchor_out, float* momentum_out) {
  for (unsigned k = 0; k < kPerThread; ++k) {
    const std::size_t i = blockIdx.x * kPerBlock + k * kThreads + threadIdx.x;
    if (i >= n) return;
    const NesterovElement next = nesterov_element(rates, {anchor[i], momentum[i]}, delta[i]);
    anchor_out[i] = next.anchor;
    momentum_out[i] = next.momentum;
  }
}

}  // namespace

Status nesterov_cuda(const NesterovRates& rates, const NesterovArrays& a, CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, cuda_blocks("nesterov_cuda", a.anchor.size(), kPerBlock));
  if (blocks == 0) return Status::success();
  return launch("nesterov_cuda", blocks, kThreads, stream, nesterov, rates, a.anchor.data(), a.momentum.data(),
                a.delta.data(), a.anchor.size(), a.anchor_out.data(), a.momentum_out.data());
}

}  // namespace shoal
