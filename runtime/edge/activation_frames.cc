#include "runtime/edge/activation_frames.h"

#include <algorithm>
#include <utility>

#include "common/bytes.h"
#include "common/uncleared_memory.h"

namespace shoal {

namespace {

// Both halves are summed, so that two frames of one sample that differ nearly everywhere, as they do, differ in 64
// bits.
Base base_of(Bytes frame) {
  const ByteView all = frame.view();
  const std::size_t half = all.size() / 2;
  const std::uint64_t hash = std::uint64_t{crc32c(all.subspan(0, half))} << 32 | crc32c(all.subspan(half));
  return {std::move(frame), std::max<std::uint64_t>(hash, 1)};
}

Result<HostTensor> values_of(const Base& base, const Shape& shape) {
  return decode_tensor(base.frame.view(), DType::kF32, shape);
}

Result<Base> base_after(const DeltaCodecs& codecs, const PlacedTensor& tensor) {
  SHOAL_ASSIGN(Bytes frame, codecs.key->encode(tensor, TensorRole::kActivation));
  return base_of(std::move(frame));
}

// The delta half of `out`. ERRORS: of what made it impossible; the key frame stands.
Status add_delta(const DeltaCodecs& codecs, const PlacedTensor& activation, const Base& base, std::uint64_t seed,
                 OutgoingActivation& out) {
  const Shape& shape = activation.tensor.shape;
  SHOAL_ASSIGN(const HostTensor values, values_of(base, shape));
  const BaseView view{values.view(), base.hash};
  SHOAL_ASSIGN(Bytes delta, codecs.delta->encode(activation, TensorRole::kActivation, &view, seed));
  UnclearedMemory received(activation.tensor.bytes.size());
  SHOAL_TRY(codecs.delta->decode(delta.view(), &view, received.view()));
  SHOAL_ASSIGN(out.after_delta, base_after(codecs, TensorView{DType::kF32, shape, received.view()}));
  out.delta = std::move(delta);
  out.base_hash = base.hash;
  return {};
}

}  // namespace

std::optional<DeltaCodecs> delta_codecs_for(CodecId codec) {
  if (!is_delta(codec)) return std::nullopt;
  return DeltaCodecs{&codec_for(CodecId::kInt8), &codec_for(codec)};
}

Result<OutgoingActivation> encode_activation(const DeltaCodecs& codecs, const PlacedTensor& activation,
                                             const Base& base, std::uint64_t seed) {
  OutgoingActivation out;
  SHOAL_ASSIGN(out.key, codecs.key->encode(activation, TensorRole::kActivation, nullptr, seed));
  out.after_key = base_of(out.key);
  if (base.empty() || codecs.delta->frame_bytes(activation.tensor.shape, activation.tensor.dtype) >= out.key.size())
    return out;
  (void)add_delta(codecs, activation, base, seed, out);
  return out;
}

Result<Base> decode_activation(const DeltaCodecs& codecs, const Bytes& frame, const Base& base, const Shape& shape,
                               PlacedBytes out) {
  SHOAL_ASSIGN(const FrameHeader header, parse_frame_header(frame.view()));
  if (!header.base_hash) {
    SHOAL_TRY(decode_tensor_into(frame.view(), DType::kF32, shape, out));
    return base_of(frame);
  }
  if (base.empty() || base.hash != *header.base_hash)
    return make_error(ErrorCode::kGone, "the base of a frame is not here");
  if (header.dtype != DType::kF32 || header.shape != shape)
    return make_error(ErrorCode::kMalformed, "a delta frame of another shape than an activation's");
  SHOAL_ASSIGN(const HostTensor values, values_of(base, shape));
  const BaseView view{values.view(), base.hash};
  SHOAL_TRY(codecs.delta->decode(frame.view(), &view, out));
  return base_after(codecs, {{DType::kF32, shape, out.bytes}, out.place});
}

}  // namespace shoal
