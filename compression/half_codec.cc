#include "compression/half_codec.h"

#include <algorithm>
#include <string>

#include "common/check.h"
#include "compression/stateless.h"
#include "kernels/accumulate.h"
#include "kernels/half.h"

namespace shoal {
namespace {

HalfFormat format_of(CodecId id) { return id == CodecId::kBf16 ? HalfFormat::kBf16 : HalfFormat::kFp16; }

Error non_finite(std::string_view what, std::span<const float> values, const Shape& shape) {
  const std::size_t at = *first_non_finite(values);
  return make_error(ErrorCode::kNonFinite, std::string(what) + ": element " + std::to_string(at) + " of " +
                                               text_of(shape) + " is " + std::to_string(values[at]));
}

}  // namespace

std::uint64_t HalfCodec::frame_bytes(const Shape& shape, DType dtype) const {
  const Result<std::uint64_t> bytes = tensor_bytes(shape, dtype);
  return dtype == DType::kF32 && bytes.ok() ? frame_header_bytes(shape.size()) + *bytes / 2 : 0;
}

Result<Bytes> HalfCodec::encode(const TensorView& tensor, TensorRole role, const BaseView*, std::uint64_t) const {
  SHOAL_ASSIGN(const std::span<const float> values, fp32_values(tensor, *this));
  UnclearedMemory frame(frame_bytes(tensor.shape, tensor.dtype));
  const MutableByteView halves = frame.view().last(2 * values.size());
  std::uint32_t sum = 0;
  for (std::size_t first = 0; first < values.size(); first += kPieceElements) {
    const std::size_t count = std::min(kPieceElements, values.size() - first);
    const MutableByteView piece = halves.subspan(2 * first, 2 * count);
    if (!narrow_to_half(format_of(id_), values.subspan(first, count), piece))
      return non_finite("codec " + std::string(name()), values, tensor.shape);
    sum = crc32c(piece, sum);
  }
  seal_summed_frame({id_, kHalfVersion, role, tensor.dtype, tensor.shape, halves.size(), std::nullopt, sum},
                    frame.view());
  return std::move(frame).freeze();
}

Status HalfCodec::decode(ByteView frame, const BaseView*, MutableByteView out) const {
  SHOAL_CHECK(is_float_aligned(out.data()));
  SHOAL_ASSIGN(const FrameView view, read_codec_frame(frame, *this, out));
  const std::span<float> values(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
  if (widen_half(format_of(id_), view.payload, values)) return Status::success();
  return non_finite(std::string(name()) + " frame", values, view.header.shape);
}

}  // namespace shoal
