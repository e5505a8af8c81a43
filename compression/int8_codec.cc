#include "compression/int8_codec.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/crc32c.h"
#include "compression/frame.h"
#include "compression/stateless.h"
#include "kernels/accumulate.h"
#include "kernels/int8_rule.h"
#include "kernels/int8_tiles.h"

namespace shoal {
namespace {

std::uint64_t payload_bytes_of(std::uint64_t elements) { return int8_tile_count(elements) * sizeof(float) + elements; }

Status check_scales(std::span<const float> scales) {
  for (std::size_t tile = 0; tile < scales.size(); ++tile) {
    const float scale = scales[tile];
    if (!std::isfinite(scale)) {
      return make_error(ErrorCode::kNonFinite,
                        "int8 frame: the scale of tile " + std::to_string(tile) + " is not finite");
    }
    // Compared as bits: -0 and subnormals are told apart whatever the flush-to-zero mode.
    const bool in_range = scale >= kInt8ScaleMin && scale <= kInt8ScaleMax;
    if (!in_range && std::bit_cast<std::uint32_t>(scale) != 0) {
      return make_error(ErrorCode::kMalformed, "int8 frame: the scale of tile " + std::to_string(tile) +
                                                   " is out of range: " + std::to_string(scale));
    }
  }
  return Status::success();
}

}  // namespace

std::uint64_t Int8Codec::frame_bytes(const Shape& shape, DType dtype) const {
  const Result<std::uint64_t> bytes = tensor_bytes(shape, dtype);
  if (dtype != DType::kF32 || !bytes.ok()) return 0;
  return frame_header_bytes(shape.size()) + payload_bytes_of(*bytes / sizeof(float));
}

Result<Bytes> Int8Codec::encode(const PlacedTensor& tensor, TensorRole role, const BaseView*, std::uint64_t) const {
  const auto& [dtype, shape, bytes] = tensor.tensor;
  SHOAL_ASSIGN(const std::span<const float> values, fp32_values(tensor.tensor, *this));
  UnclearedMemory frame(frame_bytes(shape, dtype));
  const MutableByteView payload = frame.view().last(payload_bytes_of(values.size()));
  SHOAL_ASSIGN(const std::uint32_t sum, math_at(tensor.place).quantise(tensor, payload));
  const std::span<const float> scales(reinterpret_cast<const float*>(payload.data()), int8_tile_count(values.size()));
  if (const auto bad = first_non_finite(scales))
    return non_finite_tile(*this, *bad * kInt8TileElements, kInt8TileElements, tensor.tensor);
  seal_summed_frame({CodecId::kInt8, kInt8Version, role, dtype, shape, payload.size(), std::nullopt, sum},
                    frame.view());
  return std::move(frame).freeze();
}

Status Int8Codec::decode(ByteView frame, const BaseView*, PlacedBytes out) const {
  SHOAL_CHECK(is_float_aligned(out.bytes.data()));
  SHOAL_ASSIGN(const FrameView view, read_codec_frame(frame, *this, out));
  const std::size_t count = out.bytes.size() / sizeof(float), tiles = int8_tile_count(count);
  const std::uint8_t* payload = view.payload.data();
  const ByteView codes = view.payload.last(count);
  // A frame cut out of a larger message may lie anywhere; its scales, 1/17 of it, are then copied.
  std::vector<float> copied;
  if (!is_float_aligned(payload)) {
    copied.resize(tiles);
    std::memcpy(copied.data(), payload, tiles * sizeof(float));
  }
  const std::span<const float> scales(copied.empty() ? reinterpret_cast<const float*>(payload) : copied.data(), tiles);
  SHOAL_TRY(check_scales(scales));
  if (const void* bad = std::memchr(codes.data(), 0x80, codes.size())) {
    const auto index = static_cast<const std::uint8_t*>(bad) - codes.data();
    return make_error(ErrorCode::kMalformed,
                      "int8 frame: code " + std::to_string(index) + " is -128, which no encoder writes");
  }
  return math_at(out.place).dequantise(view.payload, scales, out);
}

}  // namespace shoal
