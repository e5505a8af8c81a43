// Encoded tensors: header, checksums, payload of each codec.
#include "compression/frame.h"

#include <cmath>

#include "common/byte_codec.h"
#include "tests/compression/tensors.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

constexpr std::size_t kHeaderBytesAt = 10;
constexpr std::uint64_t kDecodedBytesMax = 1u << 20;  // more than that says nothing new

std::vector<std::uint8_t> mended(ByteView bytes) {
  const std::vector<std::uint8_t> copy = copy_of(bytes);
  if (copy.size() < kFramePrologueBytes) return copy;
  const std::size_t header_bytes = get_le<std::uint16_t>(bytes, kHeaderBytesAt);
  return header_bytes >= kFramePrologueBytes && header_bytes <= copy.size() ? resealed(copy) : copy;
}

bool take_frame(ByteView bytes) {
  const auto frame = read_frame(bytes);
  if (!frame.ok() || !check_payload(*frame).ok()) return false;
  const FrameHeader& header = frame->header;
  const std::uint64_t decoded_bytes = *tensor_bytes(header.shape, header.dtype);
  if (decoded_bytes > kDecodedBytesMax) return false;
  const HostTensor known = normal_tensor(header.shape, 2);
  const BaseView base{known.view(), header.base_hash.value_or(0)};  // the one that it names, whichever that is
  const auto tensor = decode_tensor(bytes, header.dtype, header.shape, &base);
  if (!tensor.ok()) return false;
  SHOAL_CHECK_EQ(tensor->bytes.size(), decoded_bytes);
  if (header.codec != CodecId::kRaw)
    for (const float value : tensor->f32()) SHOAL_CHECK(std::isfinite(value));
  const auto encoded = codec_for(header.codec).encode(tensor->view(), header.role, &base);
  SHOAL_CHECK(encoded.ok());
  const auto again = decode_tensor(*encoded, header.dtype, header.shape, &base);
  SHOAL_CHECK(again.ok());
  if (header.codec == CodecId::kRaw) SHOAL_CHECK(same_bytes(again->bytes, tensor->bytes));
  return true;
}

bool take(ByteView bytes) {
  const bool as_it_is = take_frame(bytes);
  return take_frame(mended(bytes)) || as_it_is;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const CodecId codec : kCodecs)
    for (const Shape& shape : {Shape{3}, Shape{2, 3, 64}, Shape{1, 2, 1, 5}}) {
      const HostTensor tensor = normal_tensor(shape, 1);
      const BaseView base{tensor.view(), 7};
      all.push_back(*codec_for(codec).encode(tensor.view(), TensorRole::kGradient, &base));
    }
  for (const DType dtype : {DType::kU8, DType::kU16, DType::kU32})
    all.push_back(*codec_for(CodecId::kRaw).encode(bytes_tensor(dtype, {4, 3}, 2).view(), TensorRole::kTokens));
  return all;
}

}  // namespace

const Target frame{"frame", take, seeds};

}  // namespace shoal::fuzz
