#pragma once
// A codec of exact differences, so that swarms whose activations are whole numbers can be checked to the last bit while
// their frames need bases (runtime/edge/activation_frames.h): what a wrong base would give is a wrong number, and
// the integer executor refuses it. Pure; a product's codec is compression/delta_codec.h.
#include "runtime/edge/activation_frames.h"

namespace shoal {

class DifferenceCodec : public Codec {
 public:
  CodecId id() const override { return CodecId::kFp16; }  // whose payload is as large
  std::uint64_t frame_bytes(const Shape& shape, DType dtype) const override;
  // ERRORS: kGone (no base), kUnsupported (a difference that is no whole number of 16 bits).
  Result<Bytes> encode(const PlacedTensor& tensor, TensorRole role, const BaseView* base,
                       std::uint64_t seed) const override;
  // ERRORS: kGone (no base, or not the one that is named), kMalformed, kCorrupt.
  Status decode(ByteView frame, const BaseView* base, PlacedBytes out) const override;
};

// Key frames are raw.
DeltaCodecs exact_deltas();

}  // namespace shoal
