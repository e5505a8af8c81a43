#pragma once
// Runs kernels on the CPU: blocks in turn, a fiber a thread, and judges what they do (access_watch.h). A kernel that
// does something wrong is ended at once, before a bad access is made; its launch fails, and cudaGetErrorString tells
// thread, block and mistake. Mistakes are bad accesses, vectors that are not aligned, and threads that wait for ever:
//   - a warp function's mask must name only threads that come to the same call (stricter than CUDA, which lets threads
//     be named that have left);
//   - a shuffle must read from a lane that takes part;
//   - __syncthreads must be reached by every thread of the block.
// Not modelled: time, streams (a launch runs to its end), caches and fences, dynamic shared memory, the number of
// registers, and what a GPU's own arithmetic does (denormals, approximations of division and root).
// Thread: one at a time.
#include <cstddef>
#include <cstdint>

#include "tests/kernels/cuda_on_host/access_watch.h"

namespace shoal::cuda_on_host {

// In which order threads and blocks run between two points where they must wait. What a kernel gives may not depend on
// it.
enum class Order : std::uint8_t { kForward, kBackward, kShuffled };
inline constexpr Order kOrders[] = {Order::kForward, Order::kBackward, Order::kShuffled};
void run_in_order(Order order);

// An access that is about to be made, and an address that is no multiple of `bytes` though its type must be. Only those
// of a kernel count.
void seen(const void* at, std::size_t bytes, Access access);
void seen_misaligned(const char* file, unsigned line, const void* at, unsigned bytes);

}  // namespace shoal::cuda_on_host
