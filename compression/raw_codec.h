#pragma once
// The tensor's own bytes, any element type. Lossless: NaN and infinities travel unchanged.
#include "compression/codec.h"

namespace shoal {

class RawCodec final : public Codec {
 public:
  CodecId id() const override { return CodecId::kRaw; }
  std::uint64_t frame_bytes(const Shape& shape, DType dtype) const override;
  // ERRORS: kTooLarge, kMalformed (an extent below 1). Neither base nor seed is looked at.
  Result<Bytes> encode(const PlacedTensor& tensor, TensorRole role, const BaseView* base,
                       std::uint64_t seed) const override;
  Status decode(ByteView frame, const BaseView* base, PlacedBytes out) const override;
};

}  // namespace shoal
