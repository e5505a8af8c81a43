// On the device a payload lies as in the frame, so that it is copied as a whole.
#include "common/crc32c.h"
#include "compression/codec_math.h"
#include "kernels/frame_kernels.h"
#include "kernels/half_rule.h"
#include "kernels/int8_tiles.h"

namespace shoal {
namespace {

bool all_finite_halves(HalfFormat format, ByteView halves) {
  const std::uint32_t infinity = format == HalfFormat::kBf16 ? kBf16Infinity : kFp16Infinity;
  for (std::size_t i = 0; i < halves.size(); i += 2)
    if ((get_le<std::uint16_t>(halves, i) & (kHalfSign - 1)) >= infinity) return false;
  return true;
}

// A payload on the device, for one call.
class DevicePayload {
 public:
  DevicePayload(std::size_t bytes, CudaStream stream) : scratch_(bytes, stream), stream_(stream) {}
  const Status& status() const { return scratch_.status(); }
  // Where something begins in it.
  template <class T>
  T* at(std::size_t byte) const {
    return static_cast<T*>(static_cast<void*>(scratch_.as<std::uint8_t>() + byte));
  }
  Result<std::uint32_t> copy_out(MutableByteView to) const {
    SHOAL_TRY(frame_kernels().copy_out(to.data(), at<void>(0), to.size(), stream_));
    return crc32c(to);
  }
  Status copy_in(ByteView from) const {
    return frame_kernels().copy_in(at<void>(0), from.data(), from.size(), stream_);
  }

 private:
  DeviceScratch scratch_;
  CudaStream stream_;
};

class CudaCodecMath final : public CodecMath {
 public:
  Result<std::uint32_t> narrow(HalfFormat format, const PlacedTensor& tensor, MutableByteView payload) const override {
    const std::span<const float> values = tensor.tensor.f32();
    const CudaStream stream = tensor.place.stream;
    const DevicePayload there(payload.size(), stream);
    SHOAL_TRY(there.status());
    SHOAL_TRY(frame_kernels().narrow_to_half(format, values.data(), values.size(), there.at<std::uint16_t>(0), stream));
    SHOAL_ASSIGN(const std::uint32_t sum, there.copy_out(payload));
    if (!all_finite_halves(format, payload)) return make_error(ErrorCode::kNonFinite, "");
    return sum;
  }

  Result<std::uint32_t> quantise(const PlacedTensor& tensor, MutableByteView payload) const override {
    const std::span<const float> values = tensor.tensor.f32();
    const CudaStream stream = tensor.place.stream;
    const DevicePayload there(payload.size(), stream);
    SHOAL_TRY(there.status());
    const std::size_t scales = int8_tile_count(values.size()) * sizeof(float);
    SHOAL_TRY(frame_kernels().int8_quantise(values.data(), values.size(), there.at<std::int8_t>(scales),
                                            there.at<float>(0), stream));
    return there.copy_out(payload);
  }

  Result<std::uint32_t> pack(TileFormat format, std::uint64_t seed, const PlacedTensor& tensor,
                             MutableByteView payload) const override {
    const std::span<const float> values = tensor.tensor.f32();
    const CudaStream stream = tensor.place.stream;
    const DevicePayload there(payload.size(), stream);
    SHOAL_TRY(there.status());
    const std::size_t scales = 2 * packed_tile_count(values.size());
    SHOAL_TRY(frame_kernels().pack_tiles(format, {seed, 0}, values.data(), values.size(), there.at<std::uint16_t>(0),
                                         there.at<std::uint8_t>(scales), stream));
    return there.copy_out(payload);
  }

  Status widen(HalfFormat format, ByteView payload, const PlacedBytes& values) const override {
    if (!all_finite_halves(format, payload)) return make_error(ErrorCode::kNonFinite, "");
    const DevicePayload there(payload.size(), values.place.stream);
    SHOAL_TRY(there.status());
    SHOAL_TRY(there.copy_in(payload));
    return frame_kernels().widen_half(format, there.at<const std::uint16_t>(0), count_of(values), floats_in(values),
                                      values.place.stream);
  }

  Status dequantise(ByteView payload, std::span<const float> scales, const PlacedBytes& values) const override {
    const DevicePayload there(payload.size(), values.place.stream);
    SHOAL_TRY(there.status());
    SHOAL_TRY(there.copy_in(payload));
    return frame_kernels().int8_dequantise(there.at<const std::int8_t>(scales.size_bytes()), there.at<const float>(0),
                                           count_of(values), floats_in(values), values.place.stream);
  }

  Status unpack(TileFormat format, std::uint64_t seed, ByteView payload, const PlacedBytes& values) const override {
    const DevicePayload there(payload.size(), values.place.stream);
    SHOAL_TRY(there.status());
    SHOAL_TRY(there.copy_in(payload));
    const std::size_t scales = 2 * packed_tile_count(count_of(values));
    return frame_kernels().unpack_tiles(format, {seed, 0}, there.at<const std::uint16_t>(0),
                                        there.at<const std::uint8_t>(scales), count_of(values), floats_in(values),
                                        values.place.stream);
  }

 private:
  static std::size_t count_of(const PlacedBytes& values) { return values.bytes.size() / sizeof(float); }
  static float* floats_in(const PlacedBytes& values) { return reinterpret_cast<float*>(values.bytes.data()); }
};

}  // namespace

const CodecMath& cuda_codec_math() {
  static const CudaCodecMath math;
  return math;
}

}  // namespace shoal
