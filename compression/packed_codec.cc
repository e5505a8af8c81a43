#include "compression/packed_codec.h"

#include "common/check.h"
#include "common/crc32c.h"
#include "compression/packed_payload.h"
#include "compression/stateless.h"

namespace shoal {
namespace {

TileFormat format_of(CodecId id) {
  if (id == CodecId::kInt2) return TileFormat::kInt2;
  return id == CodecId::kInt4 ? TileFormat::kInt4 : TileFormat::kInt4Hadamard;
}

std::uint64_t seed_bytes_of(CodecId id) { return id == CodecId::kInt4Hadamard ? sizeof(std::uint64_t) : 0; }

}  // namespace

std::uint64_t PackedCodec::frame_bytes(const Shape& shape, DType dtype) const {
  const Result<std::uint64_t> bytes = tensor_bytes(shape, dtype);
  if (dtype != DType::kF32 || !bytes.ok()) return 0;
  return frame_header_bytes(shape.size()) + seed_bytes_of(id_) +
         PackedLayout(format_of(id_), *bytes / sizeof(float)).bytes();
}

Result<Bytes> PackedCodec::encode(const PlacedTensor& tensor, TensorRole role, const BaseView*,
                                  std::uint64_t seed) const {
  const auto& [dtype, shape, bytes] = tensor.tensor;
  SHOAL_ASSIGN(const std::span<const float> values, fp32_values(tensor.tensor, *this));
  const PackedLayout layout(format_of(id_), values.size());
  const std::uint64_t seed_bytes = seed_bytes_of(id_);
  UnclearedMemory frame(frame_bytes(shape, dtype));
  const MutableByteView payload = frame.view().last(seed_bytes + layout.bytes());
  if (seed_bytes > 0) put_le(payload.data(), seed);
  SHOAL_ASSIGN(const std::uint32_t sum, write_packed(layout, seed, tensor, payload.subspan(seed_bytes), *this));
  seal_summed_frame({id_, kPackedVersion, role, dtype, shape, payload.size(), std::nullopt,
                     crc32c_joined(crc32c(payload.first(seed_bytes)), sum, layout.bytes())},
                    frame.view());
  return std::move(frame).freeze();
}

Status PackedCodec::decode(ByteView frame, const BaseView*, PlacedBytes out) const {
  SHOAL_CHECK(is_float_aligned(out.bytes.data()));
  SHOAL_ASSIGN(const FrameView view, read_codec_frame(frame, *this, out));
  const std::uint64_t seed_bytes = seed_bytes_of(id_);
  const std::uint64_t seed = seed_bytes > 0 ? get_le<std::uint64_t>(view.payload, 0) : 0;
  return read_packed(PackedLayout(format_of(id_), out.bytes.size() / sizeof(float)), seed,
                     view.payload.subspan(seed_bytes), out, *this);
}

}  // namespace shoal
