#include "compression/frame.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "common/byte_codec.h"
#include "common/check.h"

namespace shoal {
namespace {

static_assert(std::endian::native == std::endian::little, "payloads are written as they lie in memory: little-endian");

constexpr std::array<std::uint8_t, 4> kMagic = {'S', 'T', 'F', '1'};
constexpr std::uint8_t kHasBase = 1;
constexpr std::uint8_t kVersions[] = {kRawVersion,    kInt8Version,   kHalfVersion,  kHalfVersion, kPackedVersion,
                                      kPackedVersion, kPackedVersion, kDeltaVersion, kDeltaVersion};  // by codec
static_assert(std::size(kVersions) == std::size(kCodecs));

// Offsets of the prologue's fields.
constexpr std::size_t kCodecAt = 4;
constexpr std::size_t kVersionAt = 5;
constexpr std::size_t kRoleAt = 6;
constexpr std::size_t kDTypeAt = 7;
constexpr std::size_t kDimsAt = 8;
constexpr std::size_t kFlagsAt = 9;
constexpr std::size_t kHeaderBytesAt = 10;
constexpr std::size_t kHeaderSumAt = 12;
constexpr std::size_t kPayloadBytesAt = 16;
constexpr std::size_t kPayloadSumAt = 24;
constexpr std::size_t kReservedAt = 28;
constexpr std::size_t kBaseHashAt = 32;

Error malformed(const std::string& what) { return make_error(ErrorCode::kMalformed, "tensor frame: " + what); }

// The sum of a header with its own field taken as zero.
std::uint32_t header_sum(ByteView header) {
  constexpr std::array<std::uint8_t, 4> kZero{};
  const std::uint32_t before = crc32c(header.first(kHeaderSumAt));
  return crc32c(header.subspan(kHeaderSumAt + kZero.size()), crc32c(kZero, before));
}

Status check_codec(std::uint8_t codec, std::uint8_t version) {
  if (codec < std::size(kVersions) && version == kVersions[codec]) return Status::success();
  std::string known;
  for (std::size_t i = 0; i < std::size(kVersions); ++i) {
    known += (i > 0 ? ", " : "") + std::to_string(i) + " " + std::string(kCodecNames[i]) + " version " +
             std::to_string(kVersions[i]);
  }
  return make_error(ErrorCode::kVersion, "tensor frame: codec " + std::to_string(codec) + " version " +
                                             std::to_string(version) + " is unknown here (known: " + known + ")");
}

// The fixed part, which decides how many bytes the header has.
Result<std::size_t> check_prologue(ByteView frame) {
  if (frame.size() < kFramePrologueBytes)
    return malformed("shorter than its prologue: " + std::to_string(frame.size()) + " bytes");
  if (!std::equal(kMagic.begin(), kMagic.end(), frame.begin())) return malformed("does not start with STF1");
  const std::size_t dims = frame[kDimsAt];
  if (dims > kFrameDimsMax)
    return make_error(ErrorCode::kTooLarge, "tensor frame: " + std::to_string(dims) + " extents, at most 8");
  const std::size_t header_bytes = frame_header_bytes(dims);
  if (get_le<std::uint16_t>(frame, kHeaderBytesAt) != header_bytes)
    return malformed("header size and extent count disagree");
  if (frame.size() < header_bytes) return malformed("cut off in its header");
  if (get_le<std::uint32_t>(frame, kHeaderSumAt) != header_sum(frame.first(header_bytes))) {
    return make_error(ErrorCode::kCorrupt, "tensor frame: the header's checksum does not fit");
  }
  return header_bytes;
}

Status check_fields(ByteView header) {
  SHOAL_TRY(check_codec(header[kCodecAt], header[kVersionAt]));
  if (header[kRoleAt] > static_cast<std::uint8_t>(TensorRole::kParameters)) return malformed("unknown role");
  if (header[kDTypeAt] > static_cast<std::uint8_t>(DType::kU32)) return malformed("unknown element type");
  if ((header[kFlagsAt] & ~kHasBase) != 0) return malformed("unknown flags");
  if (get_le<std::uint32_t>(header, kReservedAt) != 0) return malformed("reserved bytes are not zero");
  if ((header[kFlagsAt] & kHasBase) == 0 && get_le<std::uint64_t>(header, kBaseHashAt) != 0) {
    return malformed("a base hash without its flag");
  }
  for (std::size_t i = kFramePrologueBytes + 8u * header[kDimsAt]; i < header.size(); ++i) {
    if (header[i] != 0) return malformed("padding is not zero");
  }
  return Status::success();
}

}  // namespace

std::size_t frame_header_bytes(std::size_t dims) {
  SHOAL_CHECK_LE(dims, kFrameDimsMax);
  const std::size_t used = kFramePrologueBytes + 8 * dims;
  return (used + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

Result<std::uint64_t> tensor_bytes(const Shape& shape, DType dtype) {
  if (shape.size() > kFrameDimsMax) {
    return make_error(ErrorCode::kTooLarge, "tensor: " + std::to_string(shape.size()) + " extents, at most 8");
  }
  std::uint64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) {
    if (extent < 1)
      return make_error(ErrorCode::kMalformed, "tensor: extent " + std::to_string(extent) + " is below 1");
    // Division, so that no product can wrap around.
    if (static_cast<std::uint64_t>(extent) > kTensorBytesMax / bytes) {
      return make_error(ErrorCode::kTooLarge,
                        "tensor: " + text_of(shape) + " is beyond " + std::to_string(kTensorBytesMax) + " bytes");
    }
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

void seal_frame(const FrameHeader& header, MutableByteView frame) {
  FrameHeader summed = header;
  summed.checksum = crc32c(frame.subspan(frame_header_bytes(header.shape.size())));
  seal_summed_frame(summed, frame);
}

void seal_summed_frame(const FrameHeader& header, MutableByteView frame) {
  const std::size_t header_bytes = frame_header_bytes(header.shape.size());
  SHOAL_CHECK_EQ(frame.size(), header_bytes + header.payload_bytes);
  const MutableByteView head = frame.first(header_bytes);
  std::fill(head.begin(), head.end(), std::uint8_t{0});
  std::copy(kMagic.begin(), kMagic.end(), head.begin());
  head[kCodecAt] = static_cast<std::uint8_t>(header.codec);
  head[kVersionAt] = header.version;
  head[kRoleAt] = static_cast<std::uint8_t>(header.role);
  head[kDTypeAt] = static_cast<std::uint8_t>(header.dtype);
  head[kDimsAt] = static_cast<std::uint8_t>(header.shape.size());
  head[kFlagsAt] = header.base_hash ? kHasBase : 0;
  put_le(head.data() + kHeaderBytesAt, static_cast<std::uint16_t>(header_bytes));
  put_le(head.data() + kPayloadBytesAt, header.payload_bytes);
  put_le(head.data() + kPayloadSumAt, header.checksum);
  put_le(head.data() + kBaseHashAt, header.base_hash.value_or(0));
  for (std::size_t i = 0; i < header.shape.size(); ++i)
    put_le(head.data() + kFramePrologueBytes + 8 * i, header.shape[i]);
  put_le(head.data() + kHeaderSumAt, header_sum(head));
}

Result<FrameView> read_frame(ByteView frame) {
  SHOAL_ASSIGN(const std::size_t header_bytes, check_prologue(frame));
  const ByteView head = frame.first(header_bytes);
  SHOAL_TRY(check_fields(head));
  FrameView view;
  FrameHeader& header = view.header;
  header.codec = static_cast<CodecId>(head[kCodecAt]);
  header.version = head[kVersionAt];
  header.role = static_cast<TensorRole>(head[kRoleAt]);
  header.dtype = static_cast<DType>(head[kDTypeAt]);
  header.payload_bytes = get_le<std::uint64_t>(head, kPayloadBytesAt);
  header.checksum = get_le<std::uint32_t>(head, kPayloadSumAt);
  if ((head[kFlagsAt] & kHasBase) != 0) header.base_hash = get_le<std::uint64_t>(head, kBaseHashAt);
  header.shape.resize(head[kDimsAt]);
  for (std::size_t i = 0; i < header.shape.size(); ++i) {
    header.shape[i] = get_le<std::int64_t>(head, kFramePrologueBytes + 8 * i);
  }
  SHOAL_TRY(tensor_bytes(header.shape, header.dtype));
  if (header.payload_bytes != frame.size() - header_bytes) {
    return malformed("names " + std::to_string(header.payload_bytes) + " payload bytes and has " +
                     std::to_string(frame.size() - header_bytes));
  }
  view.payload = frame.subspan(header_bytes);
  return view;
}

Status check_payload(const FrameView& frame) {
  if (crc32c(frame.payload) == frame.header.checksum) return Status::success();
  return make_error(ErrorCode::kCorrupt, "tensor frame: the payload's checksum does not fit");
}

}  // namespace shoal
