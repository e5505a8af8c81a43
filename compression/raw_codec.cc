#include "compression/raw_codec.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "compression/frame.h"
#include "compression/stateless.h"

namespace shoal {

std::uint64_t RawCodec::frame_bytes(const Shape& shape, DType dtype) const {
  const Result<std::uint64_t> bytes = tensor_bytes(shape, dtype);
  return bytes.ok() ? frame_header_bytes(shape.size()) + *bytes : 0;
}

Result<Bytes> RawCodec::encode(const TensorView& tensor, TensorRole role, const BaseView*, std::uint64_t) const {
  SHOAL_ASSIGN(const std::uint64_t payload_bytes, tensor_bytes(tensor.shape, tensor.dtype));
  SHOAL_CHECK_EQ(tensor.bytes.size(), payload_bytes);
  UnclearedMemory frame(frame_bytes(tensor.shape, tensor.dtype));
  const MutableByteView payload = frame.view().last(payload_bytes);
  std::uint32_t sum = 0;
  for (std::size_t first = 0; first < payload.size(); first += kPieceElements) {
    const MutableByteView piece = payload.subspan(first, std::min(kPieceElements, payload.size() - first));
    std::memcpy(piece.data(), tensor.bytes.data() + first, piece.size());
    sum = crc32c(piece, sum);
  }
  seal_summed_frame({CodecId::kRaw, kRawVersion, role, tensor.dtype, tensor.shape, payload_bytes, std::nullopt, sum},
                    frame.view());
  return std::move(frame).freeze();
}

Status RawCodec::decode(ByteView frame, const BaseView*, MutableByteView out) const {
  SHOAL_ASSIGN(const FrameView view, read_codec_frame(frame, *this, out));
  std::memcpy(out.data(), view.payload.data(), out.size());
  return Status::success();
}

}  // namespace shoal
