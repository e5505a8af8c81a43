#pragma once
// The bytes around an encoded tensor: one header, then the codec's payload. Layout: docs/WIRE.md, "Tensor frame".
// Pure functions; thread-safe. Little-endian throughout; the payload starts at a multiple of 64 bytes of the frame, so
// that in a 64-byte aligned buffer vector code may read it in place. Bounds: kFrameDimsMax extents, kTensorBytesMax
// decoded bytes, 128 header bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "compression/codec.h"

namespace shoal {

inline constexpr std::size_t kFrameDimsMax = 8;
inline constexpr std::size_t kFramePrologueBytes = 40;  // fixed part; the extents follow
inline constexpr std::size_t kFrameAlignment = 64;
inline constexpr std::uint8_t kRawVersion = 1;
inline constexpr std::uint8_t kInt8Version = 1;
inline constexpr std::uint8_t kHalfVersion = 1;    // bf16, fp16
inline constexpr std::uint8_t kPackedVersion = 1;  // int4, int4-hadamard, int2
inline constexpr std::uint8_t kDeltaVersion = 1;   // aq4, aq2

// 64 for up to three extents, else 128. REQUIRES: dims <= kFrameDimsMax.
std::size_t frame_header_bytes(std::size_t dims);

// Decoded size in bytes. ERRORS: kTooLarge (more than kFrameDimsMax extents, or beyond kTensorBytesMax), kMalformed
// (extent < 1).
Result<std::uint64_t> tensor_bytes(const Shape& shape, DType dtype);

// Writes the header of `header.shape.size()` extents to the front of `frame`, whose payload is in place already: fills
// in both checksums. REQUIRES: frame.size() == frame_header_bytes(dims) + header.payload_bytes; a shape that
// tensor_bytes accepts.
void seal_frame(const FrameHeader& header, MutableByteView frame);
// The same for a writer that summed the payload while writing it, in header.checksum: large ones are not read again.
void seal_summed_frame(const FrameHeader& header, MutableByteView frame);

struct FrameView {
  FrameHeader header;
  ByteView payload;  // borrows the frame
};

// Reads and checks the header alone; the payload's checksum is left to check_payload, since it costs a pass over the
// bytes. ERRORS: kMalformed, kVersion, kTooLarge, kCorrupt (the header's own checksum). Allocates nothing but the
// shape.
Result<FrameView> read_frame(ByteView frame);
Status check_payload(const FrameView& frame);  // ERRORS: kCorrupt

}  // namespace shoal
