#pragma once
// What a coder does to tensors in the memory of a GPU, by what it does: the CUDA kernels of codecs and norms (contracts
// and errors: the *_cuda.h headers), and memory there. A plain table: static storage, nothing to free.
#include <cstddef>
#include <cstdint>

#include "common/result.h"
#include "kernels/cuda_stream.h"
#include "kernels/half.h"
#include "kernels/packed_tiles.h"

namespace shoal {

struct FrameKernels {
  Status (*narrow_to_half)(HalfFormat format, const float* values, std::size_t n, std::uint16_t* halves,
                           CudaStream stream);
  Status (*widen_half)(HalfFormat format, const std::uint16_t* halves, std::size_t n, float* values, CudaStream stream);
  Status (*int8_quantise)(const float* values, std::size_t n, std::int8_t* codes, float* scales, CudaStream stream);
  Status (*int8_dequantise)(const std::int8_t* codes, const float* scales, std::size_t n, float* values,
                            CudaStream stream);
  Status (*pack_tiles)(TileFormat format, TileSeed seed, const float* values, std::size_t n, std::uint16_t* scales,
                       std::uint8_t* codes, CudaStream stream);
  Status (*unpack_tiles)(TileFormat format, TileSeed seed, const std::uint16_t* scales, const std::uint8_t* codes,
                         std::size_t n, float* values, CudaStream stream);
  Status (*norm_blocks)(const float* values, std::size_t n, double* sums, CudaStream stream);
  // kernels/cuda_memory.h
  Status (*take)(std::size_t bytes, CudaStream stream, void** memory);
  void (*give_back)(void* memory, CudaStream stream);
  Status (*copy_in)(void* to, const void* from, std::size_t bytes, CudaStream stream);
  Status (*copy_out)(void* to, const void* from, std::size_t bytes, CudaStream stream);
};

bool has_frame_kernels();  // false: this build has no CUDA kernels
// REQUIRES: has_frame_kernels().
const FrameKernels& frame_kernels();

// Memory of a GPU for the length of a few launches on one stream. status(): kTooLarge (there is none).
class DeviceScratch {
 public:
  DeviceScratch(std::size_t bytes, CudaStream stream) : stream_(stream) {
    status_ = frame_kernels().take(bytes, stream, &memory_);
  }
  ~DeviceScratch() {
    if (memory_ != nullptr) frame_kernels().give_back(memory_, stream_);
  }
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;
  const Status& status() const { return status_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  CudaStream stream_;
  void* memory_ = nullptr;
  Status status_;
};

}  // namespace shoal
