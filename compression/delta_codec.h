#pragma once
// fp32 as differences to a base that both ends hold, in the tiles of int4 or int2: the codec half of AQ-SGD (Wang et
// al. 2022, arXiv 2206.01299), where only Q(a - m) crosses and both ends go on with m + Q(a - m). A base that is near
// gains log2(|a| / |a - m|) bits; so that one of no use costs little, each row (the last extent) is sent as the smaller
// of two, its difference or itself, by the sum of their squares. The quantiser's error follows each tile's largest
// magnitude, so where both are about as large, or a row is mostly zeros, the choice may be the worse one.
//   aq4   4.5 bits an element and one a row, symmetric, rounded to the nearest
//   aq2   2.5 bits an element and one a row, four levels
// Payload: a bit a row, 1 for a difference (bit 0 of byte 0 is row 0; whole bytes, the last one's others are 0), then
// compression/packed_payload.h over all rows in order. The frame names its base by hash.
#include "compression/codec.h"

namespace shoal {

class DeltaCodec final : public Codec {
 public:
  explicit DeltaCodec(CodecId id) : id_(id) {}  // REQUIRES: is_delta(id)
  CodecId id() const override { return id_; }
  std::uint64_t frame_bytes(const Shape& shape, DType dtype) const override;
  // ERRORS: kGone (no base), kUnsupported (not fp32), kNonFinite, kTooLarge, kMalformed (also: a base of another
  // shape). The seed is not looked at. REQUIRES: tensor and base 4-byte aligned.
  Result<Bytes> encode(const PlacedTensor& tensor, TensorRole role, const BaseView* base,
                       std::uint64_t seed) const override;
  // ERRORS: as Codec::decode; kGone (no base, or not the one that the frame names), kNonFinite (base and difference are
  // beyond fp32 together), kMalformed (also: a base of another shape). REQUIRES: out 4-byte aligned, and not the base.
  Status decode(ByteView frame, const BaseView* base, PlacedBytes out) const override;

 private:
  CodecId id_;
};

}  // namespace shoal
