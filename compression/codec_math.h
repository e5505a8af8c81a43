#pragma once
// What codecs do to the values of a tensor where they lie. A frame is made and read on the host; of a tensor there the
// values are coded in pieces, each summed while it is in the processor's nearest caches; of one in the memory of a GPU
// by kernels (kernels/frame_kernels.h), and the payload is copied. Both give the same bytes and values. Pure;
// thread-safe, as far as the tensor's stream is. REQUIRES of all: kF32, a payload of the values' size. ERRORS: those of
// kernels/place.h.
#include <cstdint>
#include <span>

#include "common/result.h"
#include "kernels/half.h"
#include "kernels/packed_tiles.h"
#include "kernels/place.h"

namespace shoal {

class CodecMath {
 public:
  virtual ~CodecMath() = default;
  // values (n) -> 16-bit floats (n). The CRC-32C of the payload, as of the others. ERRORS: kNonFinite, unnamed.
  virtual Result<std::uint32_t> narrow(HalfFormat format, const PlacedTensor& values,
                                       MutableByteView payload) const = 0;
  // -> scales (ceil(n / 64)), then codes (n). A tile whose values are not finite has a scale that is not.
  virtual Result<std::uint32_t> quantise(const PlacedTensor& values, MutableByteView payload) const = 0;
  // -> scales (ceil(n / 32)), then codes; likewise.
  virtual Result<std::uint32_t> pack(TileFormat format, std::uint64_t seed, const PlacedTensor& values,
                                     MutableByteView payload) const = 0;

  // And back, of payloads whose scales and codes were looked at. ERRORS: kNonFinite, unnamed (widen alone).
  virtual Status widen(HalfFormat format, ByteView payload, const PlacedBytes& values) const = 0;
  // `scales`: a copy of the payload's, aligned, or those in it.
  virtual Status dequantise(ByteView payload, std::span<const float> scales, const PlacedBytes& values) const = 0;
  virtual Status unpack(TileFormat format, std::uint64_t seed, ByteView payload, const PlacedBytes& values) const = 0;
};

const CodecMath& host_codec_math();
const CodecMath& cuda_codec_math();
inline const CodecMath& math_at(const Place& place) { return place.on_host() ? host_codec_math() : cuda_codec_math(); }

}  // namespace shoal
