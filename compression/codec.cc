#include "compression/codec.h"

#include <algorithm>
#include <string>

#include "common/check.h"
#include "common/rng.h"
#include "compression/delta_codec.h"
#include "compression/frame.h"
#include "compression/half_codec.h"
#include "compression/int8_codec.h"
#include "compression/packed_codec.h"
#include "compression/raw_codec.h"
#include "compression/stateless.h"

namespace shoal {
namespace {

// A codec's frames have one size for a shape: what names another is not worth a byte of memory.
Status check_frame_size(ByteView frame, const FrameHeader& header) {
  const std::uint64_t expected = codec_for(header.codec).frame_bytes(header.shape, header.dtype);
  if (frame.size() == expected) return Status::success();
  return make_error(ErrorCode::kMalformed, "tensor frame: " + std::to_string(frame.size()) +
                                               " bytes, but one of codec " +
                                               std::string(codec_for(header.codec).name()) + " and shape " +
                                               text_of(header.shape) + " has " + std::to_string(expected));
}

// The codec of a frame whose tensor has exactly this type and shape.
Result<const Codec*> codec_of(ByteView frame, DType dtype, const Shape& shape) {
  SHOAL_ASSIGN(const FrameHeader header, parse_frame_header(frame));
  if (header.dtype != dtype || header.shape != shape) {
    return make_error(ErrorCode::kMalformed, "tensor frame: " + text_of(header.shape) + " of type " +
                                                 std::to_string(static_cast<int>(header.dtype)) + ", expected " +
                                                 text_of(shape) + " of type " +
                                                 std::to_string(static_cast<int>(dtype)));
  }
  return &codec_for(header.codec);
}

}  // namespace

std::optional<CodecId> codec_named(std::string_view name) {
  const auto found = std::find(std::begin(kCodecNames), std::end(kCodecNames), name);
  if (found == std::end(kCodecNames)) return std::nullopt;
  return kCodecs[found - std::begin(kCodecNames)];
}

Result<FrameHeader> parse_frame_header(ByteView frame) {
  SHOAL_ASSIGN(FrameView view, read_frame(frame));
  SHOAL_TRY(check_frame_size(frame, view.header));
  return std::move(view.header);
}

Result<FrameView> read_codec_frame(ByteView frame, const Codec& codec, const PlacedBytes& out) {
  SHOAL_ASSIGN(FrameView view, read_frame(frame));
  if (view.header.codec != codec.id())
    return make_error(ErrorCode::kMalformed, "tensor frame: of another codec than " + std::string(codec.name()));
  if (view.header.base_hash.has_value() != is_delta(codec.id()))
    return make_error(ErrorCode::kMalformed, view.header.base_hash
                                                 ? "tensor frame: a base hash in a stateless codec's frame"
                                                 : "tensor frame: a difference that names no base");
  SHOAL_TRY(check_frame_size(frame, view.header));
  SHOAL_ASSIGN(const std::uint64_t decoded_bytes, tensor_bytes(view.header.shape, view.header.dtype));
  if (decoded_bytes != out.bytes.size()) {
    return make_error(ErrorCode::kMalformed, "tensor frame: decodes to " + std::to_string(decoded_bytes) +
                                                 " bytes, expected " + std::to_string(out.bytes.size()));
  }
  SHOAL_TRY(check_payload(view));
  return view;
}

Result<std::span<const float>> fp32_values(const TensorView& tensor, const Codec& codec) {
  if (tensor.dtype != DType::kF32) {
    return make_error(ErrorCode::kUnsupported,
                      "codec " + std::string(codec.name()) + " encodes fp32 tensors only: use raw");
  }
  SHOAL_ASSIGN(const std::uint64_t decoded_bytes, tensor_bytes(tensor.shape, tensor.dtype));
  SHOAL_CHECK_EQ(tensor.bytes.size(), decoded_bytes);
  SHOAL_CHECK(is_float_aligned(tensor.bytes.data()));
  return tensor.f32();
}

Error non_finite_tile(const Codec& codec, std::size_t first, std::size_t count, const TensorView& tensor) {
  const std::size_t last = std::min(first + count, tensor.f32().size()) - 1;
  return make_error(ErrorCode::kNonFinite, "codec " + std::string(codec.name()) + ": NaN or infinity within elements " +
                                               std::to_string(first) + " to " + std::to_string(last) + " of " +
                                               text_of(tensor.shape));
}

const Codec& codec_for(CodecId id) {
  static const RawCodec raw;
  static const Int8Codec int8;
  static const HalfCodec bf16(CodecId::kBf16), fp16(CodecId::kFp16);
  static const PackedCodec int4(CodecId::kInt4), int4_hadamard(CodecId::kInt4Hadamard), int2(CodecId::kInt2);
  static const DeltaCodec aq4(CodecId::kAq4), aq2(CodecId::kAq2);
  switch (id) {
    case CodecId::kRaw:
      return raw;
    case CodecId::kInt8:
      return int8;
    case CodecId::kBf16:
      return bf16;
    case CodecId::kFp16:
      return fp16;
    case CodecId::kInt4:
      return int4;
    case CodecId::kInt4Hadamard:
      return int4_hadamard;
    case CodecId::kInt2:
      return int2;
    case CodecId::kAq4:
      return aq4;
    case CodecId::kAq2:
      return aq2;
  }
  check_failed(__FILE__, __LINE__, "CodecId is an enumerator", std::to_string(static_cast<int>(id)));
}

std::uint64_t rounding_seed(const MicrobatchId& microbatch, StageId edge, TensorRole role) {
  const std::uint64_t place = std::uint64_t{edge.value} << 8 | static_cast<std::uint64_t>(role);
  return Rng(microbatch.trainer + Rng(microbatch.serial + Rng(place).next()).next()).next();
}

Status decode_tensor_into(ByteView frame, DType dtype, const Shape& shape, PlacedBytes out, const BaseView* base) {
  SHOAL_ASSIGN(const Codec* codec, codec_of(frame, dtype, shape));
  return codec->decode(frame, base, out);
}

Result<HostTensor> decode_tensor(ByteView frame, DType dtype, const Shape& shape, const BaseView* base) {
  SHOAL_ASSIGN(const Codec* codec, codec_of(frame, dtype, shape));
  SHOAL_ASSIGN(const std::uint64_t bytes, tensor_bytes(shape, dtype));
  UnclearedMemory memory(bytes);
  SHOAL_TRY(codec->decode(frame, base, memory.view()));
  return HostTensor{dtype, shape, std::move(memory).freeze()};
}

}  // namespace shoal
