#include "compression/int8_codec.h"

#include <algorithm>
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

static_assert(kPieceElements % kInt8TileElements == 0);

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

Result<Bytes> Int8Codec::encode(const TensorView& tensor, TensorRole role, const BaseView*, std::uint64_t) const {
  SHOAL_ASSIGN(const std::span<const float> values, fp32_values(tensor, *this));
  const std::size_t tiles = int8_tile_count(values.size());
  UnclearedMemory frame(frame_bytes(tensor.shape, tensor.dtype));
  const MutableByteView payload = frame.view().last(payload_bytes_of(values.size()));
  const std::span<float> scales(reinterpret_cast<float*>(payload.data()), tiles);
  const std::span<std::int8_t> codes(reinterpret_cast<std::int8_t*>(payload.data() + scales.size_bytes()),
                                     values.size());
  std::uint32_t code_sum = 0;
  for (std::size_t first = 0; first < values.size(); first += kPieceElements) {
    const std::size_t count = std::min(kPieceElements, values.size() - first);
    const std::span<std::int8_t> piece = codes.subspan(first, count);
    int8_quantise(values.subspan(first, count), piece,
                  scales.subspan(first / kInt8TileElements, int8_tile_count(count)));
    code_sum = crc32c(bytes_of(std::span<const std::int8_t>(piece)), code_sum);
  }
  if (const auto bad = first_non_finite(scales))
    return non_finite_tile(*this, *bad * kInt8TileElements, kInt8TileElements, tensor);
  const std::uint32_t scale_sum = crc32c(bytes_of(std::span<const float>(scales)));
  seal_summed_frame({CodecId::kInt8, kInt8Version, role, tensor.dtype, tensor.shape, payload.size(), std::nullopt,
                     crc32c_joined(scale_sum, code_sum, codes.size())},
                    frame.view());
  return std::move(frame).freeze();
}

Status Int8Codec::decode(ByteView frame, const BaseView*, MutableByteView out) const {
  SHOAL_CHECK(is_float_aligned(out.data()));
  SHOAL_ASSIGN(const FrameView view, read_codec_frame(frame, *this, out));
  const std::span<float> values(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
  const std::size_t tiles = int8_tile_count(values.size());
  const std::uint8_t* payload = view.payload.data();
  const std::span<const std::int8_t> codes(reinterpret_cast<const std::int8_t*>(payload + tiles * sizeof(float)),
                                           values.size());
  // A frame cut out of a larger message may lie anywhere; its scales, 1/17 of it, are then copied.
  std::vector<float> copied;
  if (!is_float_aligned(payload)) {
    copied.resize(tiles);
    std::memcpy(copied.data(), payload, tiles * sizeof(float));
  }
  const std::span<const float> scales(copied.empty() ? reinterpret_cast<const float*>(payload) : copied.data(), tiles);
  SHOAL_TRY(check_scales(scales));
  if (const void* bad = std::memchr(codes.data(), 0x80, codes.size())) {
    const auto index = static_cast<const std::int8_t*>(bad) - codes.data();
    return make_error(ErrorCode::kMalformed,
                      "int8 frame: code " + std::to_string(index) + " is -128, which no encoder writes");
  }
  int8_dequantise(codes, scales, values);
  return Status::success();
}

}  // namespace shoal
