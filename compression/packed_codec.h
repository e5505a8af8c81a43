#pragma once
// fp32 in 4 or 2 bits: tiles of 32 with a bf16 scale each (kernels/packed_tiles.h). Stateless.
//   int4            4.5 bits an element, symmetric, rounded to the nearest
//   int4-hadamard   the same after a random rotation of each tile, rounded by chance: its error is without bias, looks
//                   the same whatever the tile holds, and one outlier does not cost its tile. Drawn from the seed,
//                   which stands in the frame: 8 bytes more, and the same bytes whenever a microbatch is encoded again
//   int2            2.5 bits an element, four levels
// Payload: the seed (int4-hadamard only, u64), ceil(n / 32) bf16 scales, then the codes, 16 or 8 bytes a tile, whole
// tiles. A small tensor's frame may so be larger than raw. Bounds: kernels/packed_tiles.h.
#include "compression/codec.h"

namespace shoal {

class PackedCodec final : public Codec {
 public:
  explicit PackedCodec(CodecId id) : id_(id) {}  // REQUIRES: kInt4, kInt4Hadamard or kInt2
  CodecId id() const override { return id_; }
  std::uint64_t frame_bytes(const Shape& shape, DType dtype) const override;
  // ERRORS: kUnsupported (not fp32), kNonFinite (the first tile is named), kTooLarge, kMalformed. The base is not
  // looked at. REQUIRES: tensor.bytes 4-byte aligned.
  Result<Bytes> encode(const PlacedTensor& tensor, TensorRole role, const BaseView* base,
                       std::uint64_t seed) const override;
  // ERRORS: as Codec::decode; a scale that encode() never writes is kMalformed: with the others every code decodes to a
  // finite value. REQUIRES: out 4-byte aligned.
  Status decode(ByteView frame, const BaseView* base, PlacedBytes out) const override;

 private:
  CodecId id_;
};

}  // namespace shoal
