#pragma once
// Arrays in the memory of a GPU, for the tests of CUDA kernels. Only where SHOAL_WITH_CUDA is 1. The same tests run on
// a CPU too, where tests/kernels/cuda_on_host stands in the place of the CUDA runtime and SHOAL_CUDA_ON_HOST is 1.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/kernels/same_bits.h"

#if !defined(SHOAL_CUDA_ON_HOST)
#define SHOAL_CUDA_ON_HOST 0
#endif

namespace shoal {

// Elements of an array that fills many blocks.
#if SHOAL_CUDA_ON_HOST
inline constexpr std::size_t kManyElements = (1u << 14) + 3;
#else
inline constexpr std::size_t kManyElements = (1u << 20) + 3;
#endif

inline void require_success(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

template <class T>
using DeviceArray = std::unique_ptr<T, void (*)(T*)>;

template <class T>
DeviceArray<T> device_array(std::size_t count) {
  void* memory = nullptr;
  require_success(cudaMalloc(&memory, std::max<std::size_t>(count, 1) * sizeof(T)));
  return {static_cast<T*>(memory), [](T* p) { (void)cudaFree(p); }};
}

template <class T>
DeviceArray<T> on_device(const std::vector<T>& host) {
  DeviceArray<T> array = device_array<T>(host.size());
  require_success(cudaMemcpy(array.get(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return array;
}

template <class T>
std::vector<T> on_host(const T* array, std::size_t count) {
  std::vector<T> host(count);
  require_success(cudaMemcpy(host.data(), array, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

// Halves and scales as the twins take them, which know no alignment.
inline std::span<std::uint8_t> bytes_in(std::vector<std::uint16_t>& words) {
  return {reinterpret_cast<std::uint8_t*>(words.data()), 2 * words.size()};
}

}  // namespace shoal
