#include "runtime/stage_peer/entry_jobs.h"

#include "common/fault.h"
#include "common/log.h"
#include "common/memory_guard.h"
#include "compression/codec.h"

namespace shoal {

namespace {

std::uint32_t microseconds_of(Duration d) {
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(d).count());
}

// Where memory may end on demand.
Status memory_point() {
  if (SHOAL_FAULT("peer.memory")) return make_error(ErrorCode::kTooLarge, "fault point peer.memory");
  return Status::success();
}

}  // namespace

std::string smaller_run_text(const RunConfig& config, const StageSpec& spec) {
  std::string options;
  if (config.compute.recompute == Recompute::kNone || config.compute.recompute == Recompute::kAuto)
    options += std::string("[compute] recompute = \"") + (spec.is_last() ? "block" : "stage") + "\"";
  if (config.compute.dtype == ComputeType::kFp32)
    options += std::string(options.empty() ? "[compute] " : " or ") + "dtype = \"bf16\"";
  return "a run file with " + options +
         (options.empty() ? "more [pipeline] stages" : ", or with more [pipeline] stages,") +
         " needs less of each peer";
}

bool EntryJobs::start_release() {
  const auto job = entries_.ledger().release_job();
  if (job) release(*job);
  return job.has_value();
}

bool EntryJobs::start_next() {
  Windows& windows = entries_.windows();
  windows.note_time(env_.loop.now());
  if (entries_.ledger().leaving()) windows.flush();
  const auto job = entries_.ledger().next_job(arena_.shift_pending);
  if (job) start(*job);
  return job.has_value();
}

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
  device_.run(
      WorkKind::kUndo,
      [job, exact](StageExecutor& executor) {
        *exact = executor.undo(job.serial);
        if (job.empties) executor.clear_window(job.slot);
      },
      [this, serial = job.serial, exact] {
        if (!exact->ok()) return owner_.on_session_lost("an undo failed: " + exact->error().message);
        entries_.ledger().undo_done(serial, **exact);
      });
}

void EntryJobs::release(const Job& job) {
  device_.run(
      WorkKind::kRelease,
      [job](StageExecutor& executor) {
        for (const EntrySerial serial : job.settled) executor.settle(serial);
        for (const EntrySerial serial : job.dropped) executor.drop(serial);
      },
      [] {});
}

// What is evaluated is the model that is saved, whatever training's codec loses, and of whatever size.
ActivationCoder EntryJobs::activation_coder(EntrySerial serial, const EntryTensors& tensors, bool evaluate) {
  const StageSpec& spec = options_.spec;
  const EdgeCodecs& codecs = options_.config->wire.forward;
  const auto deltas_of = [&](std::uint16_t edge) {
    const Auto<CodecId>& codec = codecs.at(StageId(edge));
    return env_.deltas || !codec.given ? env_.deltas : delta_codecs_for(*codec.given);
  };
  const Entry& entry = *entries_.ledger().find(serial);
  ForwardBases bases;
  if (!spec.is_first()) bases.above = deltas_of(spec.stage.value - 1);
  if (bases.above)
    bases.incoming = entries_.bases().incoming(entry.transfer_from, entry.sample, tensors.input.back().view());
  CodecId below = CodecId::kRaw;
  if (!spec.is_last() && !evaluate) {
    below = codec_of(codecs.at(spec.stage), activations_, StageId(spec.stage.value + 1), "activations");
    meters_.activations_go_as(codec_for(below).name());
    bases.below = deltas_of(spec.stage.value);
    if (bases.below) bases.outgoing = entries_.bases().outgoing(entry.sample);
  }
  std::optional<NormGuard::Bound> bound;
  if (!evaluate) bound = from_above_.bound_of(tensors.microbatch);
  const std::uint64_t seed = rounding_seed(tensors.microbatch, spec.stage, TensorRole::kActivation);
  return ActivationCoder(tensors.input.back(), std::move(bases), below, seed, bound);
}

CodecId EntryJobs::codec_of(const Auto<CodecId>& option, LineCodec& line, StageId stage, const char* role) {
  if (option.given) return *option.given;
  const MeterReadings& meters = meters_.readings();
  const double compute_us = meters.forward_us.value_or(0) + meters.backward_us.value_or(0);
  if (!line.follow(entries_.neighbours().slowest_line(stage), 1e-6 * compute_us)) return line.codec();
  const std::string text = std::string(role) + " go to stage " + std::to_string(stage.value) + " as " +
                           std::string(codec_for(line.codec()).name());
  env_.events.write({.event = EventKind::kCodec, .cause = text + ": " + line.reason()});
  if (const auto times = said_.due(text, env_.loop.now()))
    log_info(text, ": ", line.reason(), LogThrottle::text_of(*times));
  return line.codec();
}

void EntryJobs::forward(EntrySerial serial, bool evaluate) {
  struct Outcome {
    ActivationCoder coder;
    Result<ForwardOutput> output = make_error(ErrorCode::kMalformed, "");
  };
  auto tensors = entries_.tensors(serial);
  SHOAL_CHECK(tensors != nullptr);
  auto outcome = std::make_shared<Outcome>(Outcome{activation_coder(serial, *tensors, evaluate)});
  const TimePoint started = env_.loop.now();
  const Session sender = entries_.ledger().find(serial)->transfer_from;
  device_.run(
      evaluate ? WorkKind::kEvaluate : WorkKind::kForward,
      [tensors, outcome, serial, evaluate, config = options_.config](StageExecutor& executor) {
        SHOAL_FAULT("peer.forward");
        const Shape shape{std::int64_t{config->data.sequences}, std::int64_t{executor.spec().model.positions} + 1};
        outcome->output = guard_memory("a forward's text tokens", [&]() -> Result<ForwardOutput> {
          SHOAL_TRY(memory_point());
          SHOAL_ASSIGN(HostTensor tokens, decode_tokens(tensors->input.front(), config->token_dtype(), shape));
          const ForwardInput input{serial, tensors->microbatch, std::move(tokens)};
          return evaluate ? executor.evaluate(input, outcome->coder) : executor.forward(input, outcome->coder);
        });
      },
      [this, serial, tensors, outcome, started, sender] {
        const Judged& input = outcome->coder.input();
        if (input.rms) book_norm(from_above_, sender, tensors->microbatch, input, "activation");
        if (outcome->coder.base_missing() && entries_.ledger().base_missing(serial)) return;
        const bool ok = outcome->output.ok();
        if (!ok) {
          warn("forward of microbatch ", tensors->microbatch, " failed: " + outcome->output.error().message);
          note_memory(outcome->output.error());
          note_refused(serial, name_of(outcome->output.code()), "activation");
        }
        const OutgoingActivation& frames = outcome->coder.made();
        meters_.encoded(frames.delta.empty() ? frames.key.size() : frames.delta.size());
        ForwardResult result;
        result.ok = ok;
        result.frame_bytes = frames.key.size();
        if (!frames.delta.empty())
          result.base = {entries_.bases().holders(entries_.ledger().find(serial)->sample, frames.base_hash),
                         frames.delta.size()};
        tensors->output = outcome->coder.take_made();
        tensors->after = outcome->coder.take_after();
        if (ok) {
          result.loss_sum = outcome->output->loss_sum;
          result.targets = outcome->output->targets;
        }
        result.took_us = microseconds_of(env_.loop.now() - started);
        entries_.ledger().forward_done(serial, result, env_.loop.now());
        SHOAL_FAULT("peer.after_forward");
      });
}

// What others send can fail every time.
void EntryJobs::warn(const char* what, const MicrobatchId& microbatch, const std::string& how) {
  if (const auto times = said_.due(what + how, env_.loop.now()))
    log_warning(what, microbatch, how, LogThrottle::text_of(*times));
}

void EntryJobs::book_norm(NormGuard& guard, const Session& from, const MicrobatchId& microbatch, const Judged& judged,
                          const char* role) {
  const double rms = *judged.rms;
  const TimePoint now = env_.loop.now();
  bool due = false;
  if (judged.verdict == Judged::Verdict::kFits)
    guard.used(from, rms);
  else if (judged.verdict == Judged::Verdict::kScaled)
    guard.scaled(from, microbatch, rms);
  else
    due = guard.refused(from, microbatch, now);
  if (!entries_.neighbours().roster().stage_of(from)) return guard.forget(from);  // its session ended meanwhile
  if (due) rest(guard, from, rms, role);
}

void EntryJobs::rest(NormGuard& guard, const Session& from, double rms, const char* role) {
  const TimePoint now = env_.loop.now();
  const bool last = entries_.neighbours().is_last(from, now);
  const std::string text = std::string(role) + "s of session " + short_name(from) + " are far too large";
  const Duration rest = last ? Duration::zero() : guard.rest(from, now);
  if (!last) entries_.neighbours().unfit(from, now + rest);
  const auto times = said_.due(text + (last ? ", last" : ""), now);
  if (!times) return;
  if (last)
    log_warning("stage ", options_.spec.stage, ": ", text, " again and again (", rms, " beside ", guard.normal(),
                "), and no other peer of its stage can be asked: it does not rest. HINT: one more replica there",
                LogThrottle::text_of(*times));
  else
    log_warning("stage ", options_.spec.stage, ": ", text, " again and again (", rms, " beside ", guard.normal(),
                "): it rests for ", static_cast<int>(seconds_of(rest)),
                " s, and others are asked meanwhile. HINT: is its build of shoal the others', and is its memory sound? "
                "Else stop it",
                LogThrottle::text_of(*times));
}

GradientCoder EntryJobs::gradient_coder(const EntryTensors& tensors) {
  const StageSpec& spec = options_.spec;
  CodecId codec = CodecId::kRaw;
  std::uint64_t seed = 0;
  if (!spec.is_first()) {
    const StageId above(static_cast<std::uint16_t>(spec.stage.value - 1));
    codec = codec_of(options_.config->wire.backward.at(above), gradients_, above, "gradients");
    meters_.gradients_go_as(codec_for(codec).name());
    seed = rounding_seed(tensors.microbatch, above, TensorRole::kGradient);
  }
  return GradientCoder(tensors.gradient_in, codec, seed, from_below_.bound_of(tensors.microbatch));
}

void EntryJobs::backward(const Job& job) {
  struct Outcome {
    GradientCoder coder;
    Result<BackwardOutput> output = make_error(ErrorCode::kMalformed, "");
  };
  const EntrySerial serial = job.serial;
  const std::optional<WindowSlot> window = job.late ? std::nullopt : std::optional(job.slot);
  auto tensors = entries_.tensors(serial);
  SHOAL_CHECK(tensors != nullptr);
  auto outcome = std::make_shared<Outcome>(Outcome{gradient_coder(*tensors)});
  const TimePoint started = env_.loop.now();
  device_.run(
      WorkKind::kBackward,
      [outcome, serial, window](StageExecutor& executor) {
        outcome->output = [&]() -> Result<BackwardOutput> {
          SHOAL_TRY(memory_point());
          SHOAL_TRY(executor.backward_input(serial, outcome->coder));
          return executor.backward_weights(serial, window);
        }();
      },
      [this, serial, tensors, outcome, started] {
        const TimePoint now = env_.loop.now();
        const auto from = entries_.courier().hops().won_by(tensors->microbatch);
        const Judged& input = outcome->coder.input();
        if (from && input.rms) book_norm(from_below_, *from, tensors->microbatch, input, "gradient");
        if (outcome->coder.bad_input()) {
          warn("gradient of microbatch ", tensors->microbatch,
               " from " + (from ? short_name(*from) : "?") + " refused: " + outcome->output.error().message);
          entries_.ledger().gradient_rejected(serial);
          entries_.courier().reject(tensors->microbatch, std::string(name_of(outcome->output.code())) + " gradient",
                                    now);
          return;
        }
        const bool ok = outcome->output.ok();
        if (!ok) {
          warn("backward of microbatch ", tensors->microbatch, " failed: " + outcome->output.error().message);
          note_memory(outcome->output.error());
          note_refused(serial, name_of(outcome->output.code()), "gradient made here, of an activation");
        }
        if (ok) {  // else what was made goes nowhere
          tensors->gradient_out = outcome->coder.made();
          meters_.encoded(tensors->gradient_out.size());
        }
        tensors->gradient_in = {};
        entries_.ledger().backward_done(serial, ok, ok ? outcome->output->stamp : 0, ok && outcome->output->recomputed,
                                        microseconds_of(now - started));
      });
}

void EntryJobs::note_memory(const Error& error) {
  if (error.code != ErrorCode::kTooLarge) return;
  const auto left = entries_.credits().out_of_memory(entries_.ledger().live());
  if (!left) return;  // more are here than may be by now
  if (*left == 0) return owner_.on_out_of_memory(error.message);
  log_warning("stage ", options_.spec.stage, ": memory ended in a pass: from now on it takes ", *left,
              " microbatches at a time at most. HINT: end other programs; ",
              smaller_run_text(*options_.config, options_.spec));
}

void EntryJobs::note_refused(EntrySerial serial, std::string_view why, std::string_view role) {
  const Entry& entry = *entries_.ledger().find(serial);
  env_.events.write(entry_event(EventKind::kRefused, entry.microbatch, EntryName{options_.self, serial},
                                std::string(why) + " " + std::string(role) +
                                    (entry.above.empty() ? "" : " from " + short_name(entry.above.back()))));
}

void EntryJobs::apply_shift() {
  struct Outcome {
    Result<InnerStepResult> result = InnerStepResult{};
    bool shift_pending = false;
  };
  auto outcome = std::make_shared<Outcome>();
  device_.run(
      WorkKind::kShift,
      [outcome](StageExecutor& executor) {
        outcome->result = executor.apply_shift();
        outcome->shift_pending = executor.shift_pending();
      },
      [this, outcome] {
        arena_.shift_pending = outcome->shift_pending;
        entries_.windows().wrote(outcome->result->stamp);
      });
}

void EntryJobs::inner_step(const Job& job) {
  struct Outcome {
    Result<InnerStepResult> result = InnerStepResult{};
    bool shift_pending = false;
    CountTag tag = 0;
  };
  auto outcome = std::make_shared<Outcome>();
  const RunConfig& config = *options_.config;
  const InnerStep step = config.inner_step(arena_.adam_step + 1, job.targets, job.run_targets, config.gradients_late());
  device_.run(
      WorkKind::kWrite,
      [outcome, slot = job.slot, step](StageExecutor& executor) {
        outcome->result = executor.inner_step(slot, step);
        outcome->shift_pending = executor.shift_pending();
        outcome->tag = executor.arena().tag(ArenaRole::kCurrent);
      },
      [this, outcome, slot = job.slot, targets = job.targets] {
        if (!outcome->result.ok())
          return owner_.on_session_lost("an inner step failed: " + outcome->result.error().message);
        ++arena_.adam_step;
        const DelayHistogram delays = entries_.windows().delays(slot);
        meters_.stepped(delays);
        meters_.dropped_graphs(outcome->result->graphs_dropped);
        arena_.shift_pending = outcome->shift_pending;
        std::vector<EntryName> entries;
        const Windows::Window& window = *entries_.windows().at(slot);
        for (const auto& [serial, entry] : window.entries) entries.push_back({options_.self, serial});
        EventRecord step{.event = EventKind::kStepped,
                         .window = slot,
                         .tag = outcome->tag,
                         .entries = std::move(entries),
                         .targets = targets};
        set_delays(step, delays, window.settle_wait_ms());
        env_.events.write(step);
        entries_.windows().note_step(slot, outcome->result->stamp);
        owner_.on_inner_step();
      });
}

}  // namespace shoal
