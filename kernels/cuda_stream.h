#pragma once
// What every CUDA launcher of kernels/ is given. Exists without CUDA too.
namespace shoal {

using CudaStream = void*;  // a cudaStream_t; null is the default stream

}  // namespace shoal
