#pragma once
// The CUDA pair of kernels/packed_tiles.h. Exists only where SHOAL_WITH_CUDA is 1; returns the bits of the scalar twin.
// The launchers only enqueue: no allocation, no synchronisation, no torch. All pointers are device memory of the
// current device and belong to the caller until the stream has passed the launch. Thread-safe, as far as the stream is.
#include <cstddef>
#include <cstdint>

#include "common/result.h"
#include "kernels/cuda_stream.h"
#include "kernels/packed_tiles.h"

namespace shoal {

// values (n) fp32 -> scales (ceil(n / 32)) bf16, codes (packed_tile_bytes for each). n = 0 does nothing.
// REQUIRES: values 4-byte and scales 2-byte aligned.
// ERRORS: kInput (alignment, or more than 2^31 - 1 blocks), kUnsupported (the CUDA runtime refused the launch, with its
// text).
Status pack_tiles_cuda(TileFormat format, TileSeed seed, const float* values, std::size_t n, std::uint16_t* scales,
                       std::uint8_t* codes, CudaStream stream);
// scales, codes -> values (n). The same requirements and errors.
Status unpack_tiles_cuda(TileFormat format, TileSeed seed, const std::uint16_t* scales, const std::uint8_t* codes,
                         std::size_t n, float* values, CudaStream stream);

}  // namespace shoal
