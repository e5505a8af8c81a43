#include "runtime/edge/hop_coders.h"

#include <cmath>
#include <sstream>

#include "common/crypto/hash.h"
#include "common/uncleared_memory.h"

namespace shoal {
namespace {

Status scale(const PlacedSpace& to, double factor) {
  SHOAL_ASSIGN(const HostTensor here, fetched(to.filled()));
  UnclearedMemory scaled(here.bytes.size());
  auto* out = reinterpret_cast<float*>(scaled.data());
  for (const float value : here.f32()) *out++ = static_cast<float>(factor * value);
  return put(scaled.view(), to);
}

// Its root mean square. What is too large and may be used is scaled.
Result<double> judge(const PlacedSpace& to, const NormGuard::Bound& bound, Judged& judged) {
  SHOAL_ASSIGN(const double rms, root_mean_square(to.filled()));
  if (!std::isfinite(rms)) return rms;  // the executor refuses it
  judged = {rms, Judged::Verdict::kFits};
  if (rms <= bound.limit) return rms;
  const bool scales = rms <= bound.scaled_from;
  judged.verdict = scales ? Judged::Verdict::kScaled : Judged::Verdict::kTooLarge;
  if (scales) {
    SHOAL_TRY(scale(to, bound.limit / rms));
    return bound.limit;
  }
  std::ostringstream text;
  text << "its root mean square is " << rms << ", and at most " << bound.limit << " is used: " << NormGuard::kFactor
       << " times the median of this edge's senders, or " << NormGuard::kAlwaysMax;
  return make_error(ErrorCode::kMalformed, text.str());
}

// kTooLarge out of a pass is memory that ended here (stages/executor.h): nobody who sends may say that.
Error of_sender(const Error& error) {
  return error.code == ErrorCode::kTooLarge ? make_error(ErrorCode::kMalformed, error.message) : error;
}

Result<double> judged(const PlacedSpace& to, const std::optional<NormGuard::Bound>& bound, Judged& input) {
  return bound ? judge(to, *bound, input) : root_mean_square(to.filled());
}

Digest digest_of(std::initializer_list<ByteView> frames) {
  Hasher hasher;
  for (const ByteView frame : frames) {
    hasher.update_u64(frame.size());
    hasher.update(frame);
  }
  return hasher.finish();
}

}  // namespace

Result<HostTensor> decode_tokens(const Bytes& frame, DType dtype, const Shape& shape) {
  auto tokens = decode_tensor(frame, dtype, shape);
  if (!tokens.ok()) return of_sender(tokens.error());
  return tokens;
}

Result<double> ActivationCoder::decode(const PlacedSpace& to) {
  if (bases_.above) {
    auto after = decode_activation(*bases_.above, frame_, bases_.incoming, to.shape, to);
    base_missing_ = !after.ok() && after.code() == ErrorCode::kGone;
    if (!after.ok()) return of_sender(after.error());
    after_ = *std::move(after);
  } else {
    const Status decoded = decode_tensor_into(frame_, to.dtype, to.shape, to);
    if (!decoded.ok()) return of_sender(decoded.error());
  }
  return judged(to, bound_, input_);
}

Status ActivationCoder::encode(const PlacedTensor& from) {
  if (bases_.below) {
    SHOAL_ASSIGN(made_, encode_activation(*bases_.below, from, bases_.outgoing, seed_));
  } else {
    SHOAL_ASSIGN(made_.key, codec_for(below_).encode(from, TensorRole::kActivation, nullptr, seed_));
  }
  return {};
}

Commitment ActivationCoder::commitment(const Bytes& tokens, WeightStamp weights) const {
  return {digest_of({tokens, frame_}), digest_of({made_.key, made_.delta}), weights};
}

Result<double> GradientCoder::decode(const PlacedSpace& to) {
  const Status decoded = decode_tensor_into(frame_, to.dtype, to.shape, to);
  auto rms = decoded.ok() ? judged(to, bound_, input_) : Result<double>(of_sender(decoded.error()));
  bad_input_ = !rms.ok() || !std::isfinite(*rms);
  return rms;
}

Status GradientCoder::encode(const PlacedTensor& from) {
  SHOAL_ASSIGN(made_, codec_for(above_).encode(from, TensorRole::kGradient, nullptr, seed_));
  return {};
}

Commitment GradientCoder::commitment(WeightStamp weights) const {
  return {digest_of({frame_}), digest_of({made_}), weights};
}

}  // namespace shoal
