#include "kernels/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <string>

namespace shoal {
namespace {

Status said(const char* what, cudaError_t error, ErrorCode code = ErrorCode::kUnsupported) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // an error left behind would be blamed on the next call
  return make_error(code, std::string(what) + ": " + cudaGetErrorString(error));
}

Status copy(void* to, const void* from, std::size_t bytes, CudaStream stream, cudaMemcpyKind kind) {
  const auto queue = static_cast<cudaStream_t>(stream);
  SHOAL_TRY(said("a copy to or from a GPU", cudaMemcpyAsync(to, from, bytes, kind, queue)));
  return said("a GPU's stream", cudaStreamSynchronize(queue));
}

}  // namespace

Status take_cuda_memory(std::size_t bytes, CudaStream stream, void** memory) {
  return said("memory of a GPU", cudaMallocAsync(memory, bytes, static_cast<cudaStream_t>(stream)),
              ErrorCode::kTooLarge);
}

void give_cuda_memory(void* memory, CudaStream stream) {
  (void)cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
}

Status copy_to_cuda_memory(void* to, const void* from, std::size_t bytes, CudaStream stream) {
  return copy(to, from, bytes, stream, cudaMemcpyHostToDevice);
}

Status copy_from_cuda_memory(void* to, const void* from, std::size_t bytes, CudaStream stream) {
  return copy(to, from, bytes, stream, cudaMemcpyDeviceToHost);
}

}  // namespace shoal
