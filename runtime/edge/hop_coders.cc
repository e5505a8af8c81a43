#include "runtime/edge/hop_coders.h"

#include <cmath>
#include <sstream>

#include "kernels/norm.h"

namespace shoal {
namespace {

// Its root mean square. What is too large and may be used is scaled.
Result<double> judge(std::span<float> values, const NormGuard::Bound& bound, Judged& judged) {
  const double rms = root_mean_square(values);
  if (!std::isfinite(rms)) return rms;  // the executor refuses it
  judged = {rms, Judged::Verdict::kFits};
  if (rms <= bound.limit) return rms;
  const bool scale = rms <= bound.scaled_from;
  judged.verdict = scale ? Judged::Verdict::kScaled : Judged::Verdict::kTooLarge;
  if (scale) {
    const double factor = bound.limit / rms;
    for (float& value : values) value = static_cast<float>(factor * value);
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

Result<double> judged(std::span<float> values, const std::optional<NormGuard::Bound>& bound, Judged& input) {
  return bound ? judge(values, *bound, input) : root_mean_square(values);
}

}  // namespace

Result<HostTensor> decode_tokens(const Bytes& frame, DType dtype, const Shape& shape) {
  auto tokens = decode_tensor(frame, dtype, shape);
  if (!tokens.ok()) return of_sender(tokens.error());
  return tokens;
}

Result<double> ActivationCoder::decode(const PlacedSpace& to) {
  if (bases_.above) {
    auto after = decode_activation(*bases_.above, frame_, bases_.incoming, to.shape, to.on_host());
    base_missing_ = !after.ok() && after.code() == ErrorCode::kGone;
    if (!after.ok()) return of_sender(after.error());
    after_ = *std::move(after);
  } else {
    const Status decoded = decode_tensor_into(frame_, to.dtype, to.shape, to.on_host());
    if (!decoded.ok()) return of_sender(decoded.error());
  }
  return judged(to.f32_on_host(), bound_, input_);
}

Status ActivationCoder::encode(const PlacedTensor& from) {
  if (bases_.below) {
    SHOAL_ASSIGN(made_, encode_activation(*bases_.below, from.on_host(), bases_.outgoing, seed_));
  } else {
    SHOAL_ASSIGN(made_.key, codec_for(below_).encode(from.on_host(), TensorRole::kActivation, nullptr, seed_));
  }
  return {};
}

Result<double> GradientCoder::decode(const PlacedSpace& to) {
  const Status decoded = decode_tensor_into(frame_, to.dtype, to.shape, to.on_host());
  auto rms = decoded.ok() ? judged(to.f32_on_host(), bound_, input_) : Result<double>(of_sender(decoded.error()));
  bad_input_ = !rms.ok() || !std::isfinite(*rms);
  return rms;
}

Status GradientCoder::encode(const PlacedTensor& from) {
  SHOAL_ASSIGN(made_, codec_for(above_).encode(from.on_host(), TensorRole::kGradient, nullptr, seed_));
  return {};
}

}  // namespace shoal
