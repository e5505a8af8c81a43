#include "kernels/device.h"

#if SHOAL_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace shoal {

#if SHOAL_WITH_CUDA
namespace {

CudaReport no_gpu(cudaError_t error) {
  (void)cudaGetLastError();  // an error left behind would be blamed on the next call
  return {{}, std::string("no GPU: ") + cudaGetErrorString(error) + " (CUDA error " + std::to_string(error) + ")"};
}

}  // namespace

CudaReport probe_cuda() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return no_gpu(error);
  CudaReport report;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess)
      return no_gpu(error);
    report.devices.push_back({properties.name, properties.totalGlobalMem, properties.major, properties.minor});
  }
  if (report.devices.empty()) report.reason = "no GPU: the driver lists no device";
  return report;
}

std::string cuda_kernels_text() { return "in this build: they make steps and code tensors on a GPU"; }
#else
CudaReport probe_cuda() {
  return {{}, "no GPU: this build has no CUDA kernels (nvcc was not found when it was configured)"};
}

std::string cuda_kernels_text() {
  return "not in this build: on a GPU tensor operations make steps, and the CPU codes tensors";
}
#endif

}  // namespace shoal
