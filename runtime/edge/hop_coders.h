#pragma once
// What stands between a stage's frames and its executor, one coder a pass: the codecs of both edges, what a tensor's
// norm is judged to be, the seeds of rounding. Made on the loop, used once in a device job, read on the loop again.
// Values: a coder owns or shares all it needs.
#include <cstdint>
#include <optional>
#include <utility>

#include "common/ids.h"
#include "runtime/edge/activation_frames.h"
#include "runtime/edge/commitment.h"
#include "runtime/edge/norm_guard.h"
#include "stages/frame_coder.h"

namespace shoal {

// What came over an edge, judged before it is used.
struct Judged {
  enum class Verdict : std::uint8_t { kFits, kScaled, kTooLarge };
  std::optional<double> rms{};  // none: nothing came that has one, or nobody asked
  Verdict verdict = Verdict::kFits;
};

// For the edges on both sides of a stage, and the bases of one sample there; no codecs: frames need no base.
struct ForwardBases {
  std::optional<DeltaCodecs> above{}, below{};
  Base incoming{}, outgoing{};
};

// Text tokens as they came. ERRORS: those of decode_tensor, kMalformed in place of kTooLarge.
Result<HostTensor> decode_tokens(const Bytes& frame, DType dtype, const Shape& shape);

// For a forward or an evaluation: an activation from the stage above, one for the stage below.
class ActivationCoder final : public FrameCoder {
 public:
  // `below` codes what goes on where `bases` has no codecs of differences for it; `seed` is of its rounding. `bound`:
  // none, and what came may be of any size.
  ActivationCoder(Bytes frame, ForwardBases bases, CodecId below, std::uint64_t seed,
                  std::optional<NormGuard::Bound> bound)
      : frame_(std::move(frame)), bases_(std::move(bases)), below_(below), seed_(seed), bound_(bound) {}
  // ERRORS: those of decode_tensor, kMalformed in place of kTooLarge; kGone (base_missing()).
  Result<double> decode(const PlacedSpace& to) override;
  Status encode(const PlacedTensor& from) override;

  const Judged& input() const { return input_; }
  bool base_missing() const { return base_missing_; }  // what came is a difference to a base that is not here
  Base take_after() { return std::move(after_); }      // what both ends hold when what came counted
  const OutgoingActivation& made() const { return made_; }
  OutgoingActivation take_made() { return std::move(made_); }
  // Names `tokens`, the frame that came beside it, and all that it saw but what was taken. Costs a pass over all.
  Commitment commitment(const Bytes& tokens, WeightStamp weights) const;

 private:
  Bytes frame_;
  ForwardBases bases_;
  CodecId below_;
  std::uint64_t seed_;
  std::optional<NormGuard::Bound> bound_;
  Judged input_;
  bool base_missing_ = false;
  Base after_;
  OutgoingActivation made_;
};

// For a backward: a gradient from the stage below, one for the stage above.
class GradientCoder final : public FrameCoder {
 public:
  // `bound`: as ActivationCoder's.
  GradientCoder(Bytes frame, CodecId above, std::uint64_t seed, std::optional<NormGuard::Bound> bound)
      : frame_(std::move(frame)), above_(above), seed_(seed), bound_(bound) {}
  Result<double> decode(const PlacedSpace& to) override;
  Status encode(const PlacedTensor& from) override;

  const Judged& input() const { return input_; }
  bool bad_input() const { return bad_input_; }  // what came is the reason that the pass failed
  const Bytes& made() const { return made_; }
  Commitment commitment(WeightStamp weights) const;

 private:
  Bytes frame_;
  CodecId above_;
  std::uint64_t seed_;
  std::optional<NormGuard::Bound> bound_;
  Judged input_;
  bool bad_input_ = false;
  Bytes made_;
};

}  // namespace shoal
