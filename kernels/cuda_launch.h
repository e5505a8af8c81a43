#pragma once
// What the CUDA sources share, and nobody else: arguments judged before a launch, and what the runtime said of it.
#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "common/result.h"

namespace shoal {

inline bool is_aligned_to(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

// Blocks of `elements_per_block` that cover n elements.
inline Result<unsigned> cuda_blocks(const char* kernel, std::size_t n, std::size_t elements_per_block) {
  const std::size_t blocks = n / elements_per_block + (n % elements_per_block != 0 ? 1 : 0);
  if (blocks <= 0x7fffffffu) return static_cast<unsigned>(blocks);
  return make_error(ErrorCode::kInput, std::string(kernel) + ": too many elements: " + std::to_string(n));
}

inline Status launch_status(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return Status::success();
  return make_error(ErrorCode::kUnsupported, std::string(kernel) + ": launch refused: " + cudaGetErrorString(error));
}

}  // namespace shoal
