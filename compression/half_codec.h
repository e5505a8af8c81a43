#pragma once
// fp32 as bf16 or fp16 (kernels/half.h): 2 bytes an element, rounded to the nearest, ties to even. Stateless.
// Payload: n 16-bit floats. Bounds: kernels/half.h. A finite value beyond the format's largest (fp16: 65504) is held at
// it, so that no finite tensor is refused; fp16 loses what is below 2^-25, as gradients often are, and bf16 does not.
#include "compression/codec.h"

namespace shoal {

class HalfCodec final : public Codec {
 public:
  explicit HalfCodec(CodecId id) : id_(id) {}  // REQUIRES: kBf16 or kFp16
  CodecId id() const override { return id_; }
  std::uint64_t frame_bytes(const Shape& shape, DType dtype) const override;
  // ERRORS: kUnsupported (not fp32), kNonFinite (the first element is named), kTooLarge, kMalformed. Neither base nor
  // seed is looked at. REQUIRES: tensor.bytes 4-byte aligned.
  Result<Bytes> encode(const PlacedTensor& tensor, TensorRole role, const BaseView* base,
                       std::uint64_t seed) const override;
  // ERRORS: as Codec::decode; NaN or an infinity in the frame is kNonFinite. REQUIRES: out 4-byte aligned.
  Status decode(ByteView frame, const BaseView* base, PlacedBytes out) const override;

 private:
  CodecId id_;
};

}  // namespace shoal
