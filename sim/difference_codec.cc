#include "sim/difference_codec.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compression/frame.h"

namespace shoal {

namespace {
using Step = std::int16_t;  // of one element
}

std::uint64_t DifferenceCodec::frame_bytes(const Shape& shape, DType) const {
  return frame_header_bytes(shape.size()) + sizeof(Step) * static_cast<std::uint64_t>(element_count(shape));
}

Result<Bytes> DifferenceCodec::encode(const PlacedTensor& placed, TensorRole role, const BaseView* base,
                                      std::uint64_t) const {
  if (base == nullptr) return make_error(ErrorCode::kGone, "a difference needs a base");
  const TensorView& tensor = placed.on_host();
  const std::span<const float> values = tensor.f32(), from = base->tensor.f32();
  Buffer frame(frame_bytes(tensor.shape, tensor.dtype));
  std::uint8_t* to = frame.data() + frame_header_bytes(tensor.shape.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float difference = values[i] - from[i];
    const auto step = static_cast<Step>(
        std::clamp<float>(difference, std::numeric_limits<Step>::min(), std::numeric_limits<Step>::max()));
    if (static_cast<float>(step) != difference)
      return make_error(ErrorCode::kUnsupported, "a difference that is no whole number");
    std::memcpy(to + i * sizeof(Step), &step, sizeof(Step));
  }
  FrameHeader header;
  header.codec = id();
  header.version = kHalfVersion;
  header.role = role;
  header.shape = tensor.shape;
  header.payload_bytes = values.size() * sizeof(Step);
  header.base_hash = base->hash;
  seal_frame(header, frame.view());
  return std::move(frame).freeze();
}

Status DifferenceCodec::decode(ByteView frame, const BaseView* base, PlacedBytes placed) const {
  const MutableByteView out = placed.on_host();
  SHOAL_ASSIGN(const FrameView view, read_frame(frame));
  if (base == nullptr || view.header.base_hash != base->hash)
    return make_error(ErrorCode::kGone, "the base of a frame is not here");
  const std::span<const float> from = base->tensor.f32();
  if (out.size() != from.size() * sizeof(float) || view.payload.size() != from.size() * sizeof(Step))
    return make_error(ErrorCode::kMalformed, "a frame of another size than its base");
  SHOAL_TRY(check_payload(view));
  for (std::size_t i = 0; i < from.size(); ++i) {
    Step step = 0;
    std::memcpy(&step, view.payload.data() + i * sizeof(Step), sizeof(Step));
    const float value = from[i] + static_cast<float>(step);
    std::memcpy(out.data() + i * sizeof(float), &value, sizeof(float));
  }
  return Status::success();
}

DeltaCodecs exact_deltas() {
  static const DifferenceCodec difference;
  return {&codec_for(CodecId::kRaw), &difference};
}

}  // namespace shoal
