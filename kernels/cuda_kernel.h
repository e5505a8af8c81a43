#pragma once
// How the CUDA sources launch their kernels. REQUIRES: <cuda_runtime.h> stands in front of it, whose cudaLaunchKernel
// it calls: NVIDIA's, or that of the tests, which run the same sources on a CPU (tests/kernels/cuda_on_host).
#include <type_traits>

#include "kernels/cuda_launch.h"
#include "kernels/cuda_stream.h"

namespace shoal {

// Enqueues `kernel`, a __global__ function; `name` is the launcher's, for the error. REQUIRES: blocks > 0.
// ERRORS: as launch_status.
template <class... Parameters>
Status launch(const char* name, unsigned blocks, unsigned threads, CudaStream stream, void (*kernel)(Parameters...),
              std::type_identity_t<Parameters>... arguments) {
  void* values[] = {&arguments...};
  (void)cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), values, 0, static_cast<cudaStream_t>(stream));
  return launch_status(name);  // the runtime remembers what cudaLaunchKernel returned
}

}  // namespace shoal
