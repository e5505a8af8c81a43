#pragma once
// What our CUDA sources use of the language and of its runtime, for a C++ compiler without a GPU. It stands in the
// place of NVIDIA's header when tests compile kernels/*.cu as C++: threads run on fibers of the CPU, one at a time
// (host_grid.h), and each of their accesses to memory is judged (access_watch.h). Kernels run when they are launched.
// Thread: one at a time uses the device.
#include <math.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local  // its place among thread-locals is what marks it as shared memory

struct alignas(4) char4 {
  signed char x, y, z, w;
};
struct alignas(8) ushort4 {
  unsigned short x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline char4 make_char4(signed char x, signed char y, signed char z, signed char w) { return {x, y, z, w}; }
inline ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z, unsigned short w) {
  return {x, y, z, w};
}
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_count, unsigned y_count = 1, unsigned z_count = 1) : x(x_count), y(y_count), z(z_count) {}
};

// ---- What a kernel sees

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace shoal::cuda_on_host {

enum class Meeting { kBarrier, kSyncWarp, kIndex, kDown, kXor };

// Waits for the other threads of the block or of the warp's `mask`; `value` is what this thread gives, and what comes
// back is what it gets.
std::uint64_t meet(Meeting meeting, unsigned mask, std::uint64_t value, int parameter, int width, int line);
void atomic_access(const void* at, std::size_t bytes);

template <class T>
T shuffle(Meeting meeting, unsigned mask, T value, int parameter, int width, int line) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = meet(meeting, mask, bits, parameter, width, line);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T, class Change>
[[gnu::no_sanitize("thread")]] T atomic_change(T* at, const Change& change) {
  atomic_access(at, sizeof(T));
  const T before = *at;
  *at = change(before);
  return before;
}

}  // namespace shoal::cuda_on_host

inline void __syncthreads(int line = __builtin_LINE()) {
  shoal::cuda_on_host::meet(shoal::cuda_on_host::Meeting::kBarrier, 0, 0, 0, 0, line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  shoal::cuda_on_host::meet(shoal::cuda_on_host::Meeting::kSyncWarp, mask, 0, 0, 0, line);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, int line = __builtin_LINE()) {
  return shoal::cuda_on_host::shuffle(shoal::cuda_on_host::Meeting::kIndex, mask, value, lane, width, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, int line = __builtin_LINE()) {
  return shoal::cuda_on_host::shuffle(shoal::cuda_on_host::Meeting::kDown, mask, value, static_cast<int>(distance),
                                      width, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, int line = __builtin_LINE()) {
  return shoal::cuda_on_host::shuffle(shoal::cuda_on_host::Meeting::kXor, mask, value, lane_mask, width, line);
}

template <class T>
T atomicAdd(T* at, T value) {
  return shoal::cuda_on_host::atomic_change(at, [value](T before) { return before + value; });
}
template <class T>
T atomicMin(T* at, T value) {
  return shoal::cuda_on_host::atomic_change(at, [value](T before) { return value < before ? value : before; });
}

inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }

inline std::uint32_t __float_as_uint(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline float __uint_as_float(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
// A CPU's conversion gives the least int where this one goes to the nearest end of the range, and to 0 for a NaN.
inline int __float2int_rn(float value) {
  if (!(value == value)) return 0;
  if (value >= 0x1p31f) return INT32_MAX;
  if (value <= -0x1p31f) return INT32_MIN;
  return static_cast<int>(nearbyintf(value));
}
// Never fused on a GPU; here no compiler option allows it (CMakeLists.txt).
inline float __fmul_rn(float a, float b) { return a * b; }

// ---- What the host sees

using cudaStream_t = struct CUstream_st*;
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorLaunchFailure = 719,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
struct cudaDeviceProp {
  char name[256] = {};
  std::size_t totalGlobalMem = 0;
  int major = 0, minor = 0;
};

cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetLastError();
// Of a launch that failed: what the last kernel did wrong.
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index);

namespace shoal::cuda_on_host {

using Kernel = void (*)();
using KernelCall = void (*)(Kernel kernel, void** arguments);
cudaError_t run_grid(KernelCall call, Kernel kernel, dim3 blocks, dim3 threads, void** arguments);

// The parameters of a kernel stand in memory of their own, which is not judged.
template <class... Parameters>
struct Call {
  template <std::size_t... kIndex>
  [[gnu::no_sanitize("thread", "alignment")]] static void with(Kernel kernel, void** arguments,
                                                               std::index_sequence<kIndex...>) {
    reinterpret_cast<void (*)(Parameters...)>(kernel)(*static_cast<Parameters*>(arguments[kIndex])...);
  }
  [[gnu::no_sanitize("thread", "alignment")]] static void make(Kernel kernel, void** arguments) {
    with(kernel, arguments, std::index_sequence_for<Parameters...>{});
  }
};

}  // namespace shoal::cuda_on_host

template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, void** arguments, std::size_t,
                             cudaStream_t) {
  namespace here = shoal::cuda_on_host;
  return here::run_grid(&here::Call<Parameters...>::make, reinterpret_cast<here::Kernel>(kernel), blocks, threads,
                        arguments);
}
