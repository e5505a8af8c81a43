#pragma once
// fp32 as int8 tiles of 64 (kernels/int8_tiles.h): 1.0625 bytes an element. Stateless.
// Payload: ceil(n / 64) fp32 scales, then n int8 codes. Strict both ways: only what encode() can write is decoded, so
// that a decoded tensor is finite whatever the frame's author wished. Bound: |x - decoded| <= 0.5001 * absmax(tile) /
// 127, or |x| < 1.5e-36 for a tile whose absmax is below that.
#include "compression/codec.h"

namespace shoal {

class Int8Codec final : public Codec {
 public:
  CodecId id() const override { return CodecId::kInt8; }
  std::uint64_t frame_bytes(const Shape& shape, DType dtype) const override;
  // ERRORS: kUnsupported (not fp32), kNonFinite (the first tile is named), kTooLarge, kMalformed. Neither base nor
  // seed is looked at. REQUIRES: tensor.bytes 4-byte aligned.
  Result<Bytes> encode(const PlacedTensor& tensor, TensorRole role, const BaseView* base,
                       std::uint64_t seed) const override;
  // ERRORS: as Codec::decode; a scale that encode() never writes or a code of -128 is kMalformed.
  // REQUIRES: out 4-byte aligned.
  Status decode(ByteView frame, const BaseView* base, PlacedBytes out) const override;
};

}  // namespace shoal
