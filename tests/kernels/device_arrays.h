#pragma once
// Arrays in the memory of a GPU, for the tests of CUDA kernels. Only where SHOAL_WITH_CUDA is 1. The same tests run on
// a CPU too, where tests/kernels/cuda_on_host stands in the place of the CUDA runtime and SHOAL_CUDA_ON_HOST is 1.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

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

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// The sign and payload of a NaN are the machine's own.
inline void expect_same_floats(const std::vector<float>& got, const std::vector<float>& expected,
                               const std::string& name) {
  ASSERT_EQ(got.size(), expected.size()) << name;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(expected[i])) << name << " at " << i;
  }
}

}  // namespace shoal
