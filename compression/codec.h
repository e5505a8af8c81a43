#pragma once
// Turns a tensor, wherever it lies, into the bytes that cross a link and back: the same bytes from every place, and the
// same values there (compression/codec_math.h). Pure: no state, no I/O, no torch; the base of a delta comes
// from outside (runtime/edge/base_book.h keeps bases; a receiver without the one that is named asks for a key
// frame). Thread-safe (const after construction). Frame layout: docs/WIRE.md, "Tensor frame".
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"
#include "common/tensor_view.h"
#include "kernels/place.h"

namespace shoal {

enum class CodecId : std::uint8_t {
  kRaw = 0,
  kInt8 = 1,
  kBf16 = 2,
  kFp16 = 3,
  kInt4 = 4,
  kInt4Hadamard = 5,
  kInt2 = 6,
  kAq4 = 7,
  kAq2 = 8
};
inline constexpr CodecId kCodecs[] = {CodecId::kRaw,  CodecId::kInt8, CodecId::kBf16,
                                      CodecId::kFp16, CodecId::kInt4, CodecId::kInt4Hadamard,
                                      CodecId::kInt2, CodecId::kAq4,  CodecId::kAq2};
// By id; as in RUN.toml.
inline constexpr std::string_view kCodecNames[] = {"raw",           "int8", "bf16", "fp16", "int4",
                                                   "int4-hadamard", "int2", "aq4",  "aq2"};
static_assert(std::size(kCodecs) == std::size(kCodecNames));

std::optional<CodecId> codec_named(std::string_view name);

// Whether its frames are differences to a base; key frames are another codec's then.
constexpr bool is_delta(CodecId codec) { return codec == CodecId::kAq4 || codec == CodecId::kAq2; }

// Whether whole numbers up to 127 come out as they were, 127 or -127 among every 64: what stages/integer_executor.h
// sends.
constexpr bool keeps_whole_numbers(CodecId codec) {
  return codec != CodecId::kInt4 && codec != CodecId::kInt4Hadamard && codec != CodecId::kInt2 && !is_delta(codec);
}

enum class TensorRole : std::uint8_t { kActivation = 0, kGradient = 1, kTokens = 2, kParameters = 3 };

// What a frame says about itself; everything is checked before memory for the tensor is reserved.
struct FrameHeader {
  CodecId codec = CodecId::kRaw;
  std::uint8_t version = 1;
  TensorRole role = TensorRole::kActivation;
  DType dtype = DType::kF32;  // of the decoded tensor
  Shape shape;
  std::uint64_t payload_bytes = 0;
  std::optional<std::uint64_t> base_hash;  // delta frames only
  std::uint32_t checksum = 0;              // CRC-32C of the payload
};

// ERRORS: kMalformed, kVersion (codec id or version unknown), kTooLarge (more than 8 dims, extents or bytes beyond
// kTensorBytesMax), kCorrupt.
Result<FrameHeader> parse_frame_header(ByteView frame);
inline constexpr std::uint64_t kTensorBytesMax = 1ull << 31;

// What a delta is a difference to: the fp32 tensor that both ends hold, of the shape of what is coded, and its name.
// encode() writes the hash into the frame; who decodes must bring the base of that hash.
struct BaseView {
  TensorView tensor;
  std::uint64_t hash = 0;
};

class Codec {
 public:
  virtual ~Codec() = default;
  virtual CodecId id() const = 0;
  std::string_view name() const { return kCodecNames[static_cast<std::size_t>(id())]; }
  // Exact size of the frame that encode() will make.
  virtual std::uint64_t frame_bytes(const Shape& shape, DType dtype) const = 0;
  // `seed`: what a codec that rounds by chance draws from (rounding_seed below); the frame says what its reader needs
  // of it. ERRORS: kNonFinite (NaN or infinity in a lossy codec's input), kUnsupported (dtype), kGone (base needed and
  // not given).
  virtual Result<Bytes> encode(const PlacedTensor& tensor, TensorRole role, const BaseView* base = nullptr,
                               std::uint64_t seed = 0) const = 0;
  // Decodes into memory of the caller: out.size() == element_count(shape) * size_of(dtype).
  // ERRORS: kMalformed, kCorrupt (checksum), kNonFinite (scale not finite), kGone (base missing or another one).
  virtual Status decode(ByteView frame, const BaseView* base, PlacedBytes out) const = 0;
};

// REQUIRES: an enumerator.
const Codec& codec_for(CodecId id);

// One seed for each tensor of a microbatch, so that whoever encodes it again, or in another's place, makes the same
// bytes. `edge`: the stage before it, as in EdgeCodecs.
std::uint64_t rounding_seed(const MicrobatchId& microbatch, StageId edge, TensorRole role);

// Header check and decode in one: the tensor must have exactly `dtype` and `shape`. `out` as Codec::decode's.
Status decode_tensor_into(ByteView frame, DType dtype, const Shape& shape, PlacedBytes out,
                          const BaseView* base = nullptr);
// The same into memory of its own.
Result<HostTensor> decode_tensor(ByteView frame, DType dtype, const Shape& shape, const BaseView* base = nullptr);

}  // namespace shoal
