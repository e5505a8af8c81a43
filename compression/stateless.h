#pragma once
// What the codecs share.
#include "common/uncleared_memory.h"
#include "compression/codec.h"
#include "compression/codec_math.h"
#include "compression/frame.h"

namespace shoal {

// Tensors are coded in pieces of so many elements: a piece is summed while it is still in the processor's nearest
// caches. A multiple of every tile.
inline constexpr std::size_t kPieceElements = 8192;

inline bool is_float_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignof(float) == 0;
}

// What a lossy codec encodes. ERRORS: kUnsupported (not fp32), kTooLarge, kMalformed (shape).
// REQUIRES: tensor.bytes fits the shape and is 4-byte aligned.
Result<std::span<const float>> fp32_values(const TensorView& tensor, const Codec& codec);

// kNonFinite: somewhere in `count` elements from `first` on, as far as the tensor goes.
Error non_finite_tile(const Codec& codec, std::size_t first, std::size_t count, const TensorView& tensor);

// Every check of a frame that needs no knowledge of the payload, its checksum included, before a byte of `out` is
// written. ERRORS: as read_frame; kMalformed (another codec's frame; a base hash where the codec has no bases, or none
// where it has; payload or `out` of another size), kCorrupt.
Result<FrameView> read_codec_frame(ByteView frame, const Codec& codec, const PlacedBytes& out);

}  // namespace shoal
