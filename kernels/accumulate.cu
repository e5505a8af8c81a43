// A block has kPerThread elements a thread; neighbouring lanes have neighbouring elements, whatever the alignment.
#include <cuda_runtime.h>

#include "kernels/accumulate_cuda.h"
#include "kernels/accumulate_rule.h"
#include "kernels/cuda_kernel.h"

namespace shoal {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kPerThread = 4;
constexpr std::size_t kPerBlock = std::size_t{kThreads} * kPerThread;

// Atomic operations know this type of 64 bits alone.
using Word = unsigned long long;
static_assert(sizeof(Word) == sizeof(std::uint64_t));

__global__ void begin_screen(NonFinite* screen) { *screen = NonFinite{}; }

__global__ void screen_values(const float* values, std::size_t n, std::uint64_t index, NonFinite* screen) {
  Word count = 0, first = kNothingFound;
  for (unsigned k = 0; k < kPerThread; ++k) {
    const std::size_t i = blockIdx.x * kPerBlock + k * kThreads + threadIdx.x;
    if (i >= n || is_finite(values[i])) continue;
    if (count++ == 0) first = index + i;
  }
  if (count == 0) return;  // as almost always
  atomicAdd(reinterpret_cast<Word*>(&screen->count), count);
  atomicMin(reinterpret_cast<Word*>(&screen->first), first);
}

__global__ void accumulate_unless(const NonFinite* screen, float* sum, const float* gradient, std::size_t n,
                                  float sign) {
  if (screen->count != 0) return;
  for (unsigned k = 0; k < kPerThread; ++k) {
    const std::size_t i = blockIdx.x * kPerBlock + k * kThreads + threadIdx.x;
    if (i < n) sum[i] = accumulated(sum[i], gradient[i], sign);
  }
}

}  // namespace

Status begin_screen_cuda(NonFinite* screen, CudaStream stream) {
  return launch("begin_screen_cuda", 1, 1, stream, begin_screen, screen);
}

Status screen_cuda(const float* values, std::size_t n, std::uint64_t index, NonFinite* screen, CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, cuda_blocks("screen_cuda", n, kPerBlock));
  if (blocks == 0) return Status::success();
  return launch("screen_cuda", blocks, kThreads, stream, screen_values, values, n, index, screen);
}

Status accumulate_unless_cuda(const NonFinite* screen, float* sum, const float* gradient, std::size_t n, float sign,
                              CudaStream stream) {
  SHOAL_ASSIGN(const unsigned blocks, cuda_blocks("accumulate_unless_cuda", n, kPerBlock));
  if (blocks == 0) return Status::success();
  return launch("accumulate_unless_cuda", blocks, kThreads, stream, accumulate_unless, screen, sum, gradient, n, sign);
}

}  // namespace shoal
