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

Result<Bytes> RawCodec::encode(const PlacedTensor& tensor, TensorRole role, const BaseView*, std::uint64_t) const {
  const auto& [dtype, shape, bytes] = tensor.tensor;
  SHOAL_ASSIGN(const std::uint64_t payload_bytes, tensor_bytes(shape, dtype));
  SHOAL_CHECK_EQ(bytes.size(), payload_bytes);
  UnclearedMemory frame(frame_bytes(shape, dtype));
  const MutableByteView payload = frame.view().last(payload_bytes);
  std::uint32_t sum = 0;
  for (std::size_t first = 0; tensor.place.on_host() && first < payload.size(); first += kPieceElements) {
    const MutableByteView piece = payload.subspan(first, std::min(kPieceElements, payload.size() - first));
    std::memcpy(piece.data(), bytes.data() + first, piece.size());
    sum = crc32c(piece, sum);
  }
  if (!tensor.place.on_host()) {
    SHOAL_TRY(fetch(tensor, payload));
    sum = crc32c(payload);
  }
  seal_summed_frame({CodecId::kRaw, kRawVersion, role, dtype, shape, payload_bytes, std::nullopt, sum}, frame.view());
  return std::move(frame).freeze();
}

Status RawCodec::decode(ByteView frame, const BaseView*, PlacedBytes out) const {
  SHOAL_ASSIGN(const FrameView view, read_codec_frame(frame, *this, out));
  return put(view.payload, out);
}

}  // namespace shoal
