#include "compression/half_codec.h"

#include <string>

#include "common/check.h"
#include "compression/stateless.h"
#include "kernels/accumulate.h"

namespace shoal {
namespace {

HalfFormat format_of(CodecId id) { return id == CodecId::kBf16 ? HalfFormat::kBf16 : HalfFormat::kFp16; }

Error non_finite(const std::string& what, const TensorView& tensor) {
  const std::span<const float> values = tensor.f32();
  const std::size_t at = *first_non_finite(values);
  return make_error(ErrorCode::kNonFinite, what + ": element " + std::to_string(at) + " of " + text_of(tensor.shape) +
                                               " is " + std::to_string(values[at]));
}

}  // namespace

std::uint64_t HalfCodec::frame_bytes(const Shape& shape, DType dtype) const {
  const Result<std::uint64_t> bytes = tensor_bytes(shape, dtype);
  return dtype == DType::kF32 && bytes.ok() ? frame_header_bytes(shape.size()) + *bytes / 2 : 0;
}

Result<Bytes> HalfCodec::encode(const PlacedTensor& tensor, TensorRole role, const BaseView*, std::uint64_t) const {
  const auto& [dtype, shape, bytes] = tensor.tensor;
  SHOAL_TRY(fp32_values(tensor.tensor, *this));
  UnclearedMemory frame(frame_bytes(shape, dtype));
  const MutableByteView halves = frame.view().last(bytes.size() / 2);
  const Result<std::uint32_t> sum = math_at(tensor.place).narrow(format_of(id_), tensor, halves);
  if (!sum.ok() && sum.code() == ErrorCode::kNonFinite) {
    SHOAL_ASSIGN(const HostTensor here, fetched(tensor));
    return non_finite("codec " + std::string(name()), here.view());
  }
  SHOAL_TRY(sum);
  seal_summed_frame({id_, kHalfVersion, role, dtype, shape, halves.size(), std::nullopt, *sum}, frame.view());
  return std::move(frame).freeze();
}

Status HalfCodec::decode(ByteView frame, const BaseView*, PlacedBytes out) const {
  SHOAL_CHECK(is_float_aligned(out.bytes.data()));
  SHOAL_ASSIGN(const FrameView view, read_codec_frame(frame, *this, out));
  Status widened = math_at(out.place).widen(format_of(id_), view.payload, out);
  if (widened.ok() || widened.error().code != ErrorCode::kNonFinite) return widened;
  UnclearedMemory here(out.bytes.size());
  (void)host_codec_math().widen(format_of(id_), view.payload, here.view());
  return non_finite(std::string(name()) + " frame", {DType::kF32, view.header.shape, here.view()});
}

}  // namespace shoal
