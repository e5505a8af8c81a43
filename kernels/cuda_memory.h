#pragma once
// Memory of the current CUDA device, in the order of a stream. Exists only where SHOAL_WITH_CUDA is 1. Thread-safe, as
// far as the stream is. ERRORS: kTooLarge (no memory), kUnsupported (the CUDA runtime refused, with its text).
#include <cstddef>

#include "common/result.h"
#include "kernels/cuda_stream.h"

namespace shoal {

// Aligned for every kernel; nothing of it is written. Given back when the stream has passed what is queued there now.
Status take_cuda_memory(std::size_t bytes, CudaStream stream, void** memory);
void give_cuda_memory(void* memory, CudaStream stream);
// From the host, whose memory may be reused at once; and to it, which waits for the stream.
Status copy_to_cuda_memory(void* to, const void* from, std::size_t bytes, CudaStream stream);
Status copy_from_cuda_memory(void* to, const void* from, std::size_t bytes, CudaStream stream);

}  // namespace shoal
