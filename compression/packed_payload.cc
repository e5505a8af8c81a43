#include "compression/packed_payload.h"

#include <optional>
#include <string>

#include "compression/stateless.h"
#include "kernels/packed_rule.h"

namespace shoal {
namespace {

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

Result<std::uint32_t> write_packed(const PackedLayout& layout, std::uint64_t seed, const PlacedTensor& values,
                                   MutableByteView out, const Codec& codec) {
  SHOAL_ASSIGN(const std::uint32_t sum, math_at(values.place).pack(layout.format, seed, values, out));
  const ByteView scales = out.first(layout.scale_bytes());
  if (const auto bad = find_scale(scales, [](std::uint32_t scale) { return scale >= kBf16Infinity; }))
    return non_finite_tile(codec, *bad * kPackedTileElements, kPackedTileElements, values.tensor);
  return sum;
}

Status read_packed(const PackedLayout& layout, std::uint64_t seed, ByteView in, const PlacedBytes& values,
                   const Codec& codec) {
  SHOAL_TRY(check_scales(in.first(layout.scale_bytes()), layout.format, codec.name()));
  return math_at(values.place).unpack(layout.format, seed, in, values);
}

}  // namespace shoal
