#include "compression/codec.h"

#include <array>
#include <string>

#include "common/check.h"
#include "compression/frame.h"
#include "compression/int8_codec.h"
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

}  // namespace

Result<FrameHeader> parse_frame_header(ByteView frame) {
  SHOAL_ASSIGN(FrameView view, read_frame(frame));
  SHOAL_TRY(check_frame_size(frame, view.header));
  return std::move(view.header);
}

Result<FrameView> read_stateless_frame(ByteView frame, const Codec& codec, MutableByteView out) {
  SHOAL_ASSIGN(FrameView view, read_frame(frame));
  if (view.header.codec != codec.id())
    return make_error(ErrorCode::kMalformed, "tensor frame: of another codec than " + std::string(codec.name()));
  if (view.header.base_hash)
    return make_error(ErrorCode::kMalformed, "tensor frame: a base hash in a stateless codec's frame");
  SHOAL_TRY(check_frame_size(frame, view.header));
  SHOAL_ASSIGN(const std::uint64_t decoded_bytes, tensor_bytes(view.header.shape, view.header.dtype));
  if (decoded_bytes != out.size()) {
    return make_error(ErrorCode::kMalformed, "tensor frame: decodes to " + std::to_string(decoded_bytes) +
                                                 " bytes, expected " + std::to_string(out.size()));
  }
  SHOAL_TRY(check_payload(view));
  return view;
}

const Codec& codec_for(CodecId id) {
  static const RawCodec raw;
  static const Int8Codec int8;
  switch (id) {
    case CodecId::kRaw:
      return raw;
    case CodecId::kInt8:
      return int8;
  }
  check_failed(__FILE__, __LINE__, "CodecId is an enumerator", std::to_string(static_cast<int>(id)));
}

Result<HostTensor> decode_tensor(ByteView frame, DType dtype, const Shape& shape, const TensorView* base) {
  SHOAL_ASSIGN(const FrameHeader header, parse_frame_header(frame));
  if (header.dtype != dtype || header.shape != shape) {
    return make_error(ErrorCode::kMalformed, "tensor frame: " + text_of(header.shape) + " of type " +
                                                 std::to_string(static_cast<int>(header.dtype)) + ", expected " +
                                                 text_of(shape) + " of type " +
                                                 std::to_string(static_cast<int>(dtype)));
  }
  SHOAL_ASSIGN(const std::uint64_t bytes, tensor_bytes(shape, dtype));
  Buffer buffer(bytes);
  SHOAL_TRY(codec_for(header.codec).decode(frame, base, buffer.view()));
  return make_host_tensor(dtype, shape, std::move(buffer));
}

}  // namespace shoal
