#include <algorithm>

#include "common/crc32c.h"
#include "compression/codec_math.h"
#include "compression/stateless.h"
#include "kernels/int8_tiles.h"

namespace shoal {
namespace {

static_assert(kPieceElements % kInt8TileElements == 0);
static_assert(kPieceElements % kPackedTileElements == 0);

std::span<float> floats_in(const PlacedBytes& values) {
  return {reinterpret_cast<float*>(values.on_host().data()), values.bytes.size() / sizeof(float)};
}

// Calls piece(first, count) for all of them.
template <class Piece>
void in_pieces(std::size_t size, const Piece& piece) {
  for (std::size_t first = 0; first < size; first += kPieceElements)
    piece(first, std::min(kPieceElements, size - first));
}

class HostCodecMath final : public CodecMath {
 public:
  Result<std::uint32_t> narrow(HalfFormat format, const PlacedTensor& tensor, MutableByteView payload) const override {
    const std::span<const float> values = tensor.on_host().f32();
    std::uint32_t sum = 0;
    for (std::size_t first = 0; first < values.size(); first += kPieceElements) {
      const std::size_t count = std::min(kPieceElements, values.size() - first);
      const MutableByteView piece = payload.subspan(2 * first, 2 * count);
      if (!narrow_to_half(format, values.subspan(first, count), piece)) return make_error(ErrorCode::kNonFinite, "");
      sum = crc32c(piece, sum);
    }
    return sum;
  }

  Result<std::uint32_t> quantise(const PlacedTensor& tensor, MutableByteView payload) const override {
    const std::span<const float> values = tensor.on_host().f32();
    const std::span<float> scales(reinterpret_cast<float*>(payload.data()), int8_tile_count(values.size()));
    const std::span<std::int8_t> codes(reinterpret_cast<std::int8_t*>(payload.data() + scales.size_bytes()),
                                       values.size());
    std::uint32_t code_sum = 0;
    in_pieces(values.size(), [&](std::size_t first, std::size_t count) {
      const std::span<std::int8_t> piece = codes.subspan(first, count);
      int8_quantise(values.subspan(first, count), piece,
                    scales.subspan(first / kInt8TileElements, int8_tile_count(count)));
      code_sum = crc32c(bytes_of(std::span<const std::int8_t>(piece)), code_sum);
    });
    return crc32c_joined(crc32c(bytes_of(std::span<const float>(scales))), code_sum, codes.size());
  }

  Result<std::uint32_t> pack(TileFormat format, std::uint64_t seed, const PlacedTensor& tensor,
                             MutableByteView payload) const override {
    const std::span<const float> values = tensor.on_host().f32();
    const std::size_t bytes = packed_tile_bytes(format), tiles = packed_tile_count(values.size());
    const MutableByteView scales = payload.first(2 * tiles), codes = payload.last(bytes * tiles);
    std::uint32_t code_sum = 0;
    in_pieces(values.size(), [&](std::size_t first, std::size_t count) {
      const std::size_t tile = first / kPackedTileElements, some = packed_tile_count(count);
      const MutableByteView piece = codes.subspan(bytes * tile, bytes * some);
      pack_tiles(format, {seed, tile}, values.subspan(first, count), scales.subspan(2 * tile, 2 * some), piece);
      code_sum = crc32c(piece, code_sum);
    });
    return crc32c_joined(crc32c(scales), code_sum, codes.size());
  }

  Status widen(HalfFormat format, ByteView payload, const PlacedBytes& values) const override {
    return widen_half(format, payload, floats_in(values)) ? Status() : Status(make_error(ErrorCode::kNonFinite, ""));
  }

  Status dequantise(ByteView payload, std::span<const float> scales, const PlacedBytes& values) const override {
    const std::span<float> out = floats_in(values);
    const auto* codes = reinterpret_cast<const std::int8_t*>(payload.data() + scales.size_bytes());
    int8_dequantise({codes, out.size()}, scales, out);
    return {};
  }

  Status unpack(TileFormat format, std::uint64_t seed, ByteView payload, const PlacedBytes& values) const override {
    const std::span<float> out = floats_in(values);
    const std::size_t tiles = packed_tile_count(out.size());
    unpack_tiles(format, {seed, 0}, payload.first(2 * tiles), payload.last(packed_tile_bytes(format) * tiles), out);
    return {};
  }
};

}  // namespace

const CodecMath& host_codec_math() {
  static const HostCodecMath math;
  return math;
}

}  // namespace shoal
