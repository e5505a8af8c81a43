#include "runtime/stage_peer/entry_jobs.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "common/fault.h"
#include "common/log.h"
#include "compression/codec.h"
#include "kernels/accumulate.h"
#include "stages/windowed_executor.h"

namespace shoal {

namespace {

std::uint32_t microseconds_of(Duration d) {
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(d).count());
}

struct Decoder {
  const RunConfig& config;
  const StageSpec& spec;
  std::int64_t sequences() const { return config.data.sequences; }
  Result<HostTensor> tokens(ByteView frame) const {
    return decode_tensor(frame, config.token_dtype(), {sequences(), std::int64_t{spec.model.positions} + 1});
  }
  Result<HostTensor> activation(ByteView frame) const { return decode_tensor(frame, DType::kF32, activation_shape()); }
  Shape activation_shape() const {
    return {sequences(), std::int64_t{spec.model.positions}, std::int64_t{spec.model.dim}};
  }
};

HostTensor scaled(const HostTensor& tensor, double factor) {
  Buffer values(tensor.bytes.size());
  const std::span<const float> from = tensor.f32();
  auto* to = reinterpret_cast<float*>(values.data());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(factor * from[i]);
  return make_host_tensor(tensor.dtype, tensor.shape, std::move(values));
}

// What is too large and may be used is scaled.
Status judge(HostTensor& tensor, const NormGuard::Bound& bound, Judged& judged) {
  const double rms = root_mean_square(tensor.f32());
  if (!std::isfinite(rms)) return {};  // refused as what is not finite
  judged = {rms, Judged::Verdict::kFits};
  if (rms <= bound.limit) return {};
  judged.verdict = bound.scale ? Judged::Verdict::kScaled : Judged::Verdict::kTooLarge;
  if (bound.scale) {
    tensor = scaled(tensor, bound.limit / rms);
    return {};
  }
  std::ostringstream text;
  text << "its root mean square is " << rms << ", and at most " << bound.limit << " is used: " << NormGuard::kFactor
       << " times the running mean of this edge, or " << NormGuard::kAlwaysMax;
  return make_error(ErrorCode::kMalformed, text.str());
}

// What a forward leaves for the loop.
struct ForwardOutcome {
  Result<ForwardOutput> output = make_error(ErrorCode::kMalformed, "");
  OutgoingActivation frames;
  Base after;  // of the input
  bool base_missing = false;
  Judged input;
};

Result<HostTensor> decode_from_above(const Decoder& decoder, const Bytes& frame, const ForwardBases& bases,
                                     ForwardOutcome& outcome) {
  if (!bases.above) return decoder.activation(frame);
  auto decoded = decode_activation(*bases.above, frame, bases.incoming, decoder.activation_shape());
  outcome.base_missing = !decoded.ok() && decoded.code() == ErrorCode::kGone;
  if (!decoded.ok()) return decoded.error();
  outcome.after = std::move(decoded->after);
  return std::move(decoded->tensor);
}

// `bound` null: whatever its size is.
// As the frames that the next stage gets. What is evaluated is the model that is saved, whatever training's codec
// loses.
Result<OutgoingActivation> encode_for_below(const Decoder& decoder, const EntryTensors& tensors, bool evaluate,
                                            const ForwardBases& bases, const TensorView& activation) {
  const StageId stage = decoder.spec.stage;
  const std::uint64_t seed = rounding_seed(tensors.microbatch, stage, TensorRole::kActivation);
  if (bases.below && !evaluate) return encode_activation(*bases.below, activation, bases.outgoing, seed);
  const CodecId codec = evaluate ? CodecId::kRaw : decoder.config.wire.forward.at(stage);
  OutgoingActivation result;
  SHOAL_ASSIGN(result.key, codec_for(codec).encode(activation, TensorRole::kActivation, nullptr, seed));
  return result;
}

Status decode_input(const Decoder& decoder, const EntryTensors& tensors, const ForwardBases& bases,
                    const NormGuard::Bound* bound, ForwardInput& input, ForwardOutcome& outcome) {
  SHOAL_ASSIGN(input.tokens, decoder.tokens(tensors.input.front()));
  if (decoder.spec.is_first()) return {};
  SHOAL_ASSIGN(input.activation, decode_from_above(decoder, tensors.input.back(), bases, outcome));
  return bound == nullptr ? Status() : judge(input.activation, *bound, outcome.input);
}

}  // namespace

void EntryJobs::start(const Job& job) {
  switch (job.kind) {
    case JobKind::kForward:
      return forward(job.serial, false);
    case JobKind::kEvaluate:
      return forward(job.serial, true);
    case JobKind::kBackward:
      return backward(job);
    case JobKind::kUndo:
      return undo(job);
    case JobKind::kInnerStep:
      return inner_step(job);
    case JobKind::kApplyShift:
      return apply_shift();
    case JobKind::kRelease:
      return release(job);
  }
}

void EntryJobs::undo(const Job& job) {
  auto exact = std::make_shared<Result<bool>>(false);
  parts_.device.run(
      WorkKind::kUndo,
      [job, exact](StageExecutor& executor) {
        *exact = executor.undo(job.serial);
        if (job.empties) executor.clear_window(job.slot);
      },
      [this, serial = job.serial, exact] {
        if (!exact->ok()) return parts_.owner.on_session_lost("an undo failed: " + exact->error().message);
        parts_.ledger.undo_done(serial, **exact);
      });
}

void EntryJobs::release(const Job& job) {
  parts_.device.run(
      WorkKind::kRelease,
      [job](StageExecutor& executor) {
        for (const EntrySerial serial : job.settled) executor.settle(serial);
        for (const EntrySerial serial : job.dropped) executor.drop(serial);
      },
      [] {});
}

ForwardBases EntryJobs::bases_of(EntrySerial serial) const {
  const StageSpec& spec = parts_.options.spec;
  const EdgeCodecs& codecs = parts_.options.config->wire.forward;
  const auto of_edge = [&](std::uint16_t edge) {
    return parts_.env.deltas ? parts_.env.deltas : delta_codecs_for(codecs.at(StageId(edge)));
  };
  const Entry& entry = *parts_.ledger.find(serial);
  ForwardBases bases;
  if (!spec.is_first()) bases.above = of_edge(spec.stage.value - 1);
  if (!spec.is_last()) bases.below = of_edge(spec.stage.value);
  if (bases.above)
    if (const auto header = parse_frame_header(tensors_.find(serial)->input.back()); header.ok() && header->base_hash)
      bases.incoming = parts_.bases.incoming(entry.transfer_from, entry.sample, *header->base_hash);
  if (bases.below) bases.outgoing = parts_.bases.outgoing(entry.sample);
  return bases;
}

void EntryJobs::forward(EntrySerial serial, bool evaluate) {
  auto tensors = tensors_.find(serial);
  SHOAL_CHECK(tensors != nullptr);
  auto outcome = std::make_shared<ForwardOutcome>();
  const TimePoint started = parts_.env.loop.now();
  const Session sender = parts_.ledger.find(serial)->transfer_from;
  parts_.device.run(
      evaluate ? WorkKind::kEvaluate : WorkKind::kForward,
      [tensors, outcome, serial, evaluate, config = parts_.options.config, spec = parts_.options.spec,
       bases = bases_of(serial), bound = from_above_.bound_of(tensors->microbatch)](StageExecutor& executor) {
        SHOAL_FAULT("peer.forward");
        const Decoder decoder{*config, spec};
        ForwardInput input;
        input.entry = serial;
        input.microbatch = tensors->microbatch;
        if (const Status decoded = decode_input(decoder, *tensors, bases, evaluate ? nullptr : &bound, input, *outcome);
            !decoded.ok()) {
          outcome->output = decoded.error();
          return;
        }
        outcome->output = evaluate ? executor.evaluate(input) : executor.forward(input);
        if (!outcome->output.ok() || spec.is_last()) return;
        auto frames = encode_for_below(decoder, *tensors, evaluate, bases, outcome->output->activation.view());
        if (!frames.ok()) {
          outcome->output = frames.error();
          if (!evaluate) executor.drop(serial);
          return;
        }
        outcome->frames = *std::move(frames);
        outcome->output->activation = {};
      },
      [this, serial, tensors, outcome, started, sender] {
        if (outcome->input.rms) book_norm(from_above_, sender, tensors->microbatch, outcome->input, "activation");
        if (outcome->base_missing && parts_.ledger.base_missing(serial)) return;
        const bool ok = outcome->output.ok();
        if (!ok) {
          warn("forward of microbatch ", tensors->microbatch, " failed: " + outcome->output.error().message);
          note_refused(serial, name_of(outcome->output.code()), "activation");
        }
        const OutgoingActivation& frames = outcome->frames;
        parts_.meters.encoded(frames.delta.empty() ? frames.key.size() : frames.delta.size());
        ForwardResult result;
        result.ok = ok;
        result.frame_bytes = frames.key.size();
        if (!frames.delta.empty())
          result.base = {parts_.bases.holders(parts_.ledger.find(serial)->sample, frames.base_hash),
                         frames.delta.size()};
        tensors->output = std::move(outcome->frames);
        tensors->after = std::move(outcome->after);
        if (ok) {
          result.loss_sum = outcome->output->loss_sum;
          result.targets = outcome->output->targets;
        }
        result.took_us = microseconds_of(parts_.env.loop.now() - started);
        parts_.ledger.forward_done(serial, result, parts_.env.loop.now());
        SHOAL_FAULT("peer.after_forward");
      });
}

// What others send can fail every time.
void EntryJobs::warn(const char* what, const MicrobatchId& microbatch, const std::string& how) {
  if (const auto times = said_.due(what + how, parts_.env.loop.now()))
    log_warning(what, microbatch, how, LogThrottle::text_of(*times));
}

void EntryJobs::book_norm(NormGuard& guard, const Session& from, const MicrobatchId& microbatch, const Judged& judged,
                          const char* role) {
  const double rms = *judged.rms;
  if (judged.verdict == Judged::Verdict::kFits) return guard.used(from, rms);
  if (judged.verdict == Judged::Verdict::kScaled) return guard.scaled(microbatch);
  const TimePoint now = parts_.env.loop.now();
  const auto rest = guard.refused(from, microbatch, rms, now);
  if (!rest) return;
  parts_.neighbours.unfit(from, now + *rest);
  const std::string text = std::string(role) + "s of session " + short_name(from) + " are far too large";
  if (const auto times = said_.due(text, now))
    log_warning("stage ", parts_.options.spec.stage, ": ", text, " again and again (", rms, " beside ", guard.mean(),
                "): it rests for ", static_cast<int>(seconds_of(*rest)),
                " s, and others are asked meanwhile. HINT: is its build of shoal the others', and is its memory sound? "
                "Else stop it",
                LogThrottle::text_of(*times));
}

void EntryJobs::backward(const Job& job) {
  struct Outcome {
    Result<BackwardOutput> output = make_error(ErrorCode::kMalformed, "");
    Bytes frame;
    bool bad_input = false;
    Judged input;
  };
  const EntrySerial serial = job.serial;
  const std::optional<WindowSlot> window = job.late ? std::nullopt : std::optional(job.slot);
  auto tensors = tensors_.find(serial);
  SHOAL_CHECK(tensors != nullptr);
  auto outcome = std::make_shared<Outcome>();
  const TimePoint started = parts_.env.loop.now();
  parts_.device.run(
      WorkKind::kBackward,
      [tensors, outcome, serial, window, config = parts_.options.config, spec = parts_.options.spec,
       bound = from_below_.bound_of(tensors->microbatch)](StageExecutor& executor) {
        const Decoder decoder{*config, spec};
        HostTensor gradient;
        if (!spec.is_last()) {
          auto decoded = decoder.activation(tensors->gradient_in);
          if (decoded.ok() && !all_finite(decoded->f32()))
            decoded = make_error(ErrorCode::kNonFinite, "the gradient that came holds a value that is not finite");
          if (decoded.ok())
            if (const Status fit = judge(*decoded, bound, outcome->input); !fit.ok()) decoded = fit.error();
          if (!decoded.ok()) {
            outcome->output = decoded.error();
            outcome->bad_input = true;
            return;
          }
          gradient = *std::move(decoded);
        }
        outcome->output = executor.backward(serial, gradient, window);
        if (!outcome->output.ok() || spec.is_first()) return;
        const StageId before(static_cast<std::uint16_t>(spec.stage.value - 1));
        const std::uint64_t seed = rounding_seed(tensors->microbatch, before, TensorRole::kGradient);
        auto frame = codec_for(config->wire.backward.at(before))
                         .encode(outcome->output->gradient.view(), TensorRole::kGradient, nullptr, seed);
        outcome->output->gradient = {};
        SHOAL_CHECK(frame.ok());  // the executor screened it
        outcome->frame = *std::move(frame);
      },
      [this, serial, tensors, outcome, started] {
        const TimePoint now = parts_.env.loop.now();
        const auto from = parts_.courier.won_by(tensors->microbatch);
        if (from && outcome->input.rms) book_norm(from_below_, *from, tensors->microbatch, outcome->input, "gradient");
        if (outcome->bad_input) {
          warn("gradient of microbatch ", tensors->microbatch,
               " from " + (from ? short_name(*from) : "?") + " refused: " + outcome->output.error().message);
          parts_.ledger.gradient_rejected(serial);
          parts_.courier.reject(tensors->microbatch, std::string(name_of(outcome->output.code())) + " gradient", now);
          return;
        }
        const bool ok = outcome->output.ok();
        if (!ok) {
          warn("backward of microbatch ", tensors->microbatch, " failed: " + outcome->output.error().message);
          note_refused(serial, name_of(outcome->output.code()), "gradient made here, of an activation");
        }
        parts_.meters.encoded(outcome->frame.size());
        tensors->gradient_out = outcome->frame;
        tensors->gradient_in = {};
        parts_.ledger.backward_done(serial, ok, ok ? outcome->output->stamp : 0, ok && outcome->output->recomputed,
                                    microseconds_of(now - started));
      });
}

void EntryJobs::note_refused(EntrySerial serial, std::string_view why, std::string_view role) {
  const Entry& entry = *parts_.ledger.find(serial);
  parts_.env.events.write(entry_event(EventKind::kRefused, entry.microbatch, EntryName{parts_.options.self, serial},
                                      std::string(why) + " " + std::string(role) +
                                          (entry.above.empty() ? "" : " from " + short_name(entry.above.back()))));
}

void EntryJobs::apply_shift() {
  struct Outcome {
    Result<InnerStepResult> result = InnerStepResult{};
    bool shift_pending = false;
  };
  auto outcome = std::make_shared<Outcome>();
  parts_.device.run(
      WorkKind::kShift,
      [outcome](StageExecutor& executor) {
        outcome->result = executor.apply_shift();
        outcome->shift_pending = executor.shift_pending();
      },
      [this, outcome] {
        parts_.arena.shift_pending = outcome->shift_pending;
        parts_.windows.wrote(outcome->result->stamp);
      });
}

void EntryJobs::inner_step(const Job& job) {
  struct Outcome {
    Result<InnerStepResult> result = InnerStepResult{};
    bool shift_pending = false;
    CountTag tag = 0;
  };
  auto outcome = std::make_shared<Outcome>();
  const RunConfig& config = *parts_.options.config;
  const InnerStep step =
      config.inner_step(parts_.arena.adam_step + 1, job.targets, job.run_targets, config.gradients_late());
  parts_.device.run(
      WorkKind::kWrite,
      [outcome, slot = job.slot, step](StageExecutor& executor) {
        outcome->result = executor.inner_step(slot, step);
        outcome->shift_pending = executor.shift_pending();
        outcome->tag = executor.arena().tag(ArenaRole::kCurrent);
      },
      [this, outcome, slot = job.slot, targets = job.targets] {
        if (!outcome->result.ok())
          return parts_.owner.on_session_lost("an inner step failed: " + outcome->result.error().message);
        ++parts_.arena.adam_step;
        const DelayHistogram delays = parts_.windows.delays(slot);
        parts_.meters.stepped(delays);
        parts_.meters.dropped_graphs(outcome->result->graphs_dropped);
        parts_.arena.shift_pending = outcome->shift_pending;
        std::vector<EntryName> entries;
        const Windows::Window& window = *parts_.windows.at(slot);
        for (const auto& [serial, entry] : window.entries) entries.push_back({parts_.options.self, serial});
        EventRecord step{.event = EventKind::kStepped,
                         .window = slot,
                         .tag = outcome->tag,
                         .entries = std::move(entries),
                         .targets = targets};
        set_delays(step, delays, window.settle_wait_ms());
        parts_.env.events.write(step);
        parts_.windows.note_step(slot, outcome->result->stamp);
        parts_.owner.on_inner_step();
      });
}

}  // namespace shoal
