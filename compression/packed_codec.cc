#include "compression/packed_codec.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/byte_codec.h"
#include "common/check.h"
#include "common/crc32c.h"
#include "compression/stateless.h"
#include "kernels/packed_rule.h"
#include "kernels/packed_tiles.h"

namespace shoal {
namespace {

static_assert(kPieceElements % kPackedTileElements == 0);

TileFormat format_of(CodecId id) {
  if (id == CodecId::kInt2) return TileFormat::kInt2;
  return id == CodecId::kInt4 ? TileFormat::kInt4 : TileFormat::kInt4Hadamard;
}

// Where the parts of a payload lie.
struct Layout {
  Layout(CodecId id, std::uint64_t elements)
      : format(format_of(id)),
        tiles(packed_tile_count(elements)),
        seed_bytes(format == TileFormat::kInt4Hadamard ? sizeof(std::uint64_t) : 0) {}
  std::uint64_t scale_bytes() const { return 2 * tiles; }
  std::uint64_t code_bytes() const { return packed_tile_bytes(format) * tiles; }
  std::uint64_t payload_bytes() const { return seed_bytes + scale_bytes() + code_bytes(); }
  TileFormat format;
  std::uint64_t tiles, seed_bytes;
};

// The first of them that `refused` names.
template <class Refused>
std::optional<std::size_t> find_scale(ByteView scales, const Refused& refused) {
  for (std::size_t tile = 0; tile < scales.size() / 2; ++tile)
    if (refused(get_le<std::uint16_t>(scales, 2 * tile))) return tile;
  return std::nullopt;
}

Status check_scales(ByteView scales, TileFormat format, std::string_view name) {
  const PackedRange range = packed_range(format);
  const auto out_of_range = [&](std::uint32_t scale) {
    return scale != 0 && (scale < range.scale_min || scale > range.scale_max);
  };
  const auto bad = find_scale(scales, out_of_range);
  if (!bad) return Status::success();
  const std::uint32_t scale = get_le<std::uint16_t>(scales, 2 * *bad);
  const bool finite = (scale & (kHalfSign - 1)) < kBf16Infinity;
  return make_error(finite ? ErrorCode::kMalformed : ErrorCode::kNonFinite,
                    std::string(name) + " frame: the scale of tile " + std::to_string(*bad) +
                        (finite ? " is out of range: " + std::to_string(float_of_bf16(scale)) : " is not finite"));
}

}  // namespace

std::uint64_t PackedCodec::frame_bytes(const Shape& shape, DType dtype) const {
  const Result<std::uint64_t> bytes = tensor_bytes(shape, dtype);
  if (dtype != DType::kF32 || !bytes.ok()) return 0;
  return frame_header_bytes(shape.size()) + Layout(id_, *bytes / sizeof(float)).payload_bytes();
}

Result<Bytes> PackedCodec::encode(const TensorView& tensor, TensorRole role, const TensorView*,
                                  std::uint64_t seed) const {
  SHOAL_ASSIGN(const std::span<const float> values, fp32_values(tensor, *this));
  const Layout layout(id_, values.size());
  UnclearedMemory frame(frame_bytes(tensor.shape, tensor.dtype));
  const MutableByteView payload = frame.view().last(layout.payload_bytes());
  if (layout.seed_bytes > 0) put_le(payload.data(), seed);
  const MutableByteView scales = payload.subspan(layout.seed_bytes, layout.scale_bytes());
  const MutableByteView codes = payload.last(layout.code_bytes());
  std::uint32_t code_sum = 0;
  for (std::size_t first = 0; first < values.size(); first += kPieceElements) {
    const std::size_t count = std::min(kPieceElements, values.size() - first);
    const std::size_t tile = first / kPackedTileElements, tiles = packed_tile_count(count);
    const std::size_t bytes = packed_tile_bytes(layout.format);
    const MutableByteView piece_codes = codes.subspan(bytes * tile, bytes * tiles);
    pack_tiles(layout.format, {seed, tile}, values.subspan(first, count), scales.subspan(2 * tile, 2 * tiles),
               piece_codes);
    code_sum = crc32c(piece_codes, code_sum);
  }
  if (const auto bad = find_scale(scales, [](std::uint32_t scale) { return scale >= kBf16Infinity; }))
    return non_finite_tile(*this, *bad * kPackedTileElements, kPackedTileElements, tensor);
  const std::uint32_t front_sum = crc32c(payload.first(layout.seed_bytes + layout.scale_bytes()));
  seal_summed_frame({id_, kPackedVersion, role, tensor.dtype, tensor.shape, payload.size(), std::nullopt,
                     crc32c_joined(front_sum, code_sum, codes.size())},
                    frame.view());
  return std::move(frame).freeze();
}

Status PackedCodec::decode(ByteView frame, const TensorView*, MutableByteView out) const {
  SHOAL_CHECK(is_float_aligned(out.data()));
  SHOAL_ASSIGN(const FrameView view, read_stateless_frame(frame, *this, out));
  const std::span<float> values(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
  const Layout layout(id_, values.size());
  const ByteView scales = view.payload.subspan(layout.seed_bytes, layout.scale_bytes());
  SHOAL_TRY(check_scales(scales, layout.format, name()));
  const std::uint64_t seed = layout.seed_bytes > 0 ? get_le<std::uint64_t>(view.payload, 0) : 0;
  unpack_tiles(layout.format, {seed, 0}, scales, view.payload.last(layout.code_bytes()), values);
  return Status::success();
}

}  // namespace shoal
