#include "kernels/cuda_launch.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

namespace shoal {

bool is_aligned_to(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

Result<unsigned> cuda_blocks(const char* kernel, std::size_t n, std::size_t elements_per_block) {
  const std::size_t blocks = n / elements_per_block + (n % elements_per_block != 0 ? 1 : 0);
  if (blocks <= 0x7fffffffu) return static_cast<unsigned>(blocks);
  return make_error(ErrorCode::kInput, std::string(kernel) + ": too many elements: " + std::to_string(n));
}

Status launch_status(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return Status::success();
  return make_error(ErrorCode::kUnsupported, std::string(kernel) + ": launch refused: " + cudaGetErrorString(error));
}

}  // namespace shoal
