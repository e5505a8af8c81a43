#include "runtime/stage_peer/stage_edges.h"

#include "common/log.h"
#include "compression/codec.h"

namespace shoal {

// An evaluation's activations cross as training's do, else its passes would wait for lines that training does not fill.
// They are no sample's base and have none, so where differences go a key frame does, and they may be of any size.
ActivationCoder StageEdges::activation_coder(const Entry& entry, const EntryTensors& tensors) {
  const StageId stage = session_.spec.stage;
  const Route route = session_.spec.route();
  const bool evaluate = entry.kind == ForwardKind::kEvaluate;
  const EdgeCodecs& codecs = session_.config->wire.forward;
  const auto deltas_of = [&](StageId edge) {
    const Auto<CodecId>& codec = codecs.at(edge);
    return session_.deltas || !codec.given ? session_.deltas : delta_codecs_for(*codec.given);
  };
  ForwardBases bases;
  if (route.before) bases.above = deltas_of(*route.before);
  if (bases.above) bases.incoming = bases_.incoming(entry.transfer_from, entry.sample, tensors.input.back().view());
  CodecId below = CodecId::kRaw;
  if (route.next) {
    below = codec_of(codecs.at(stage), activations_, *route.next, "activations");
    meters_.activations_go_as(codec_for(below).name());
    bases.below = deltas_of(stage);
    if (bases.below && !evaluate) bases.outgoing = bases_.outgoing(entry.sample);
  }
  std::optional<NormGuard::Bound> bound;
  if (!evaluate) bound = from_above_.bound_of(tensors.microbatch);
  const std::uint64_t seed = rounding_seed(tensors.microbatch, stage, TensorRole::kActivation);
  return ActivationCoder(tensors.input.back(), std::move(bases), below, seed, bound);
}

KnownBase StageEdges::known_base(SampleId sample, const OutgoingActivation& made) const {
  if (made.delta.empty()) return {};
  return {bases_.holders(sample, made.base_hash), made.delta.size()};
}

CodecId StageEdges::codec_of(const Auto<CodecId>& option, LineCodec& line, StageId stage, const char* role) {
  if (option.given) return *option.given;
  if (!line.follow(neighbours_.slowest_line(stage), 1e-6 * meters_.job_us())) return line.codec();
  const std::string text = std::string(role) + " go to stage " + std::to_string(stage.value) + " as " +
                           std::string(codec_for(line.codec()).name());
  session_.events.write({.event = EventKind::kCodec, .cause = text + ": " + line.reason()});
  if (const auto times = said_.due(text, session_.loop.now()))
    log_info(text, ": ", line.reason(), LogThrottle::text_of(*times));
  return line.codec();
}

void StageEdges::book_norm(NormGuard& guard, const Session& from, const MicrobatchId& microbatch, const Judged& judged,
                           const char* role) {
  if (!judged.rms) return;
  const double rms = *judged.rms;
  const TimePoint now = session_.loop.now();
  bool due = false;
  if (judged.verdict == Judged::Verdict::kFits)
    guard.used(from, rms);
  else if (judged.verdict == Judged::Verdict::kScaled)
    guard.scaled(from, microbatch, rms);
  else
    due = guard.refused(from, microbatch, now);
  if (!neighbours_.roster().stage_of(from)) return guard.forget(from);  // its session ended meanwhile
  if (due) rest(guard, from, rms, role);
}

void StageEdges::rest(NormGuard& guard, const Session& from, double rms, const char* role) {
  const TimePoint now = session_.loop.now();
  const bool last = neighbours_.is_last(from, now);
  const std::string text = std::string(role) + "s of session " + short_name(from) + " are far too large";
  const Duration rest = last ? Duration::zero() : guard.rest(from, now);
  if (!last) neighbours_.unfit(from, now + rest);
  const auto times = said_.due(text + (last ? ", last" : ""), now);
  if (!times) return;
  const std::string what_follows =
      last
          ? "), and no other peer of its stage can be asked: it does not rest. HINT: one more replica there"
          : "): it rests for " + std::to_string(static_cast<int>(seconds_of(rest))) +
                " s, and others are asked meanwhile. HINT: is its build of shoal the others', and is its memory sound? "
                "Else stop it";
  log_warning("stage ", session_.spec.stage, ": ", text, " again and again (", rms, " beside ", guard.normal(),
              what_follows, LogThrottle::text_of(*times));
}

GradientCoder StageEdges::gradient_coder(const EntryTensors& tensors) {
  CodecId codec = CodecId::kRaw;
  std::uint64_t seed = 0;
  if (const auto above = session_.spec.route().before) {
    codec = codec_of(session_.config->wire.backward.at(*above), gradients_, *above, "gradients");
    meters_.gradients_go_as(codec_for(codec).name());
    seed = rounding_seed(tensors.microbatch, *above, TensorRole::kGradient);
  }
  return GradientCoder(tensors.gradient_in, codec, seed, from_below_.bound_of(tensors.microbatch));
}

}  // namespace shoal
