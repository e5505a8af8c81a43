#include "compression/packed_payload.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/crc32c.h"
#include "compression/stateless.h"
#include "kernels/packed_rule.h"

namespace shoal {
namespace {

static_assert(kPieceElements % kPackedTileElements == 0);

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

Result<std::uint32_t> write_packed(const PackedLayout& layout, std::uint64_t seed, std::span<const float> values,
                                   MutableByteView out, const Codec& codec, const TensorView& tensor) {
  const MutableByteView scales = out.first(layout.scale_bytes());
  const MutableByteView codes = out.last(layout.code_bytes());
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
    return non_finite_tile(codec, *bad * kPackedTileElements, kPackedTileElements, tensor);
  return crc32c_joined(crc32c(scales), code_sum, codes.size());
}

Status read_packed(const PackedLayout& layout, std::uint64_t seed, ByteView in, std::span<float> values,
                   const Codec& codec) {
  const ByteView scales = in.first(layout.scale_bytes());
  SHOAL_TRY(check_scales(scales, layout.format, codec.name()));
  unpack_tiles(layout.format, {seed, 0}, scales, in.last(layout.code_bytes()), values);
  return Status::success();
}

}  // namespace shoal
