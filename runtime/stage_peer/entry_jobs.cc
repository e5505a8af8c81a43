#include "runtime/stage_peer/entry_jobs.h"

#include "common/fault.h"
#include "common/log.h"
#include "common/memory_guard.h"
#include "router/loss_claim.h"

namespace shoal {

namespace {

std::uint32_t microseconds_of(Duration d) {
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(d).count());
}

// The stage before would refuse it as no loss of this model, and suspect this peer for it.
bool beyond_any_loss(const ForwardOutput& output, const StageSession& session) {
  const LossBound bound{session.config->targets_per_microbatch(), session.config->model.vocabulary};
  return session.spec.is_last() && !bound.refusal(output.loss_sum, output.targets).empty();
}

// Where memory may end on demand.
Status memory_point() {
  if (SHOAL_FAULT("peer.memory")) return make_error(ErrorCode::kTooLarge, "fault point peer.memory");
  return Status::success();
}

}  // namespace

std::string smaller_run_text(const RunConfig& config, const StageSpec& spec) {
  std::string options;
  if (config.compute.keeps_graphs())
    options += std::string("[compute] recompute = \"") + (spec.is_last() ? "block" : "stage") + "\"";
  if (config.compute.dtype == ComputeType::kFp32)
    options += std::string(options.empty() ? "[compute] " : " or ") + "dtype = \"bf16\"";
  return "a run file with " + options +
         (options.empty() ? "more [pipeline] stages" : ", or with more [pipeline] stages,") +
         " needs less of each peer";
}

bool EntryJobs::start(const std::optional<Job>& job) {
  if (!job) return false;
  switch (job->kind) {
    case JobKind::kForward:
    case JobKind::kEvaluate:
      forward(job->serial);
      break;
    case JobKind::kBackward:
      backward(*job);
      break;
    case JobKind::kUndo:
      undo(*job);
      break;
    case JobKind::kInnerStep:
      writes_.inner_step(*job);
      break;
    case JobKind::kApplyShift:
      writes_.apply_shift();
      break;
    case JobKind::kRelease:
      release(*job);
  }
  return true;
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
        if (!exact->ok()) return session_.owner.on_session_lost("an undo failed: " + exact->error().message);
        ledger_.undo_done(serial, **exact);
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

void EntryJobs::forward(EntrySerial serial) {
  struct Outcome {
    ActivationCoder coder;
    Result<ForwardOutput> output = make_error(ErrorCode::kMalformed, "");
  };
  auto tensors = tensors_.at(serial);
  const Entry& entry = *ledger_.entries().find(serial);
  const bool evaluate = entry.kind == ForwardKind::kEvaluate;
  auto outcome = std::make_shared<Outcome>(Outcome{edges_.activation_coder(entry, *tensors)});
  const TimePoint started = session_.loop.now();
  device_.run(
      evaluate ? WorkKind::kEvaluate : WorkKind::kForward,
      [tensors, outcome, serial, evaluate, config = session_.config](StageExecutor& executor) {
        SHOAL_FAULT("peer.forward");
        const Shape shape{std::int64_t{config->data.sequences}, std::int64_t{executor.spec().model.positions} + 1};
        outcome->output = guard_memory("a forward's text tokens", [&]() -> Result<ForwardOutput> {
          SHOAL_TRY(memory_point());
          SHOAL_ASSIGN(HostTensor tokens, decode_tokens(tensors->input.front(), config->token_dtype(), shape));
          const ForwardInput input{serial, tensors->microbatch, std::move(tokens)};
          return evaluate ? executor.evaluate(input, outcome->coder) : executor.forward(input, outcome->coder);
        });
      },
      [this, serial, tensors, outcome, started, evaluate, sender = entry.transfer_from] {
        edges_.activation_came(sender, tensors->microbatch, outcome->coder.input());
        if (outcome->coder.base_missing() && ledger_.base_missing(serial)) return;
        const bool beyond = !evaluate && outcome->output.ok() && beyond_any_loss(*outcome->output, session_);
        if (beyond) outcome->output = make_error(ErrorCode::kNonFinite, "its loss is beyond any of such a model");
        const bool ok = outcome->output.ok();
        if (!ok) {
          warn("forward of microbatch ", tensors->microbatch, " failed: " + outcome->output.error().message);
          note_memory(outcome->output.error());
          note_refused(serial, outcome->output.error(), beyond ? RefusalCause::kLoss : RefusalCause::kActivation,
                       beyond ? "loss" : "activation");
        }
        const OutgoingActivation& frames = outcome->coder.made();
        meters_.encoded(frames.delta.empty() ? frames.key.size() : frames.delta.size());
        ForwardResult result;
        result.ok = ok;
        result.frame_bytes = frames.key.size();
        result.base = edges_.known_base(ledger_.entries().find(serial)->sample, frames);
        tensors->output = outcome->coder.take_made();
        tensors->after = outcome->coder.take_after();
        if (ok) {
          result.loss_sum = outcome->output->loss_sum;
          result.targets = outcome->output->targets;
        }
        result.took_us = microseconds_of(session_.loop.now() - started);
        ledger_.forward_done(serial, result, session_.loop.now());
        SHOAL_FAULT("peer.after_forward");
      });
}

// What others send can fail every time.
void EntryJobs::warn(const char* what, const MicrobatchId& microbatch, const std::string& how) {
  if (const auto times = said_.due(what + how, session_.loop.now()))
    log_warning(what, microbatch, how, LogThrottle::text_of(*times));
}

void EntryJobs::backward(const Job& job) {
  struct Outcome {
    GradientCoder coder;
    Result<BackwardOutput> output = make_error(ErrorCode::kMalformed, "");
  };
  const EntrySerial serial = job.serial;
  const std::optional<WindowSlot> window = job.late ? std::nullopt : std::optional(job.slot);
  auto tensors = tensors_.at(serial);
  auto outcome = std::make_shared<Outcome>(Outcome{edges_.gradient_coder(*tensors)});
  const TimePoint started = session_.loop.now();
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
        const TimePoint now = session_.loop.now();
        const auto from = courier_.hops().won_by(tensors->microbatch);
        if (from) edges_.gradient_came(*from, tensors->microbatch, outcome->coder.input());
        if (outcome->coder.bad_input()) {
          warn("gradient of microbatch ", tensors->microbatch,
               " from " + (from ? short_name(*from) : "?") + " refused: " + outcome->output.error().message);
          ledger_.gradient_rejected(serial);
          courier_.reject(tensors->microbatch, std::string(name_of(outcome->output.code())) + " gradient", now);
          return;
        }
        const bool ok = outcome->output.ok();
        if (!ok) {
          warn("backward of microbatch ", tensors->microbatch, " failed: " + outcome->output.error().message);
          note_memory(outcome->output.error());
          note_refused(serial, outcome->output.error(), RefusalCause::kGradient,
                       "gradient made here, of an activation");
        }
        if (ok) {  // else what was made goes nowhere
          tensors->gradient_out = outcome->coder.made();
          meters_.encoded(tensors->gradient_out.size());
          meters_.passed(tensors->microbatch.serial);
        }
        tensors->gradient_in = {};
        ledger_.backward_done(serial, ok, ok ? outcome->output->stamp : 0, ok && outcome->output->recomputed,
                              microseconds_of(now - started));
      });
}

void EntryJobs::note_memory(const Error& error) {
  if (error.code != ErrorCode::kTooLarge) return;
  const auto left = credits_.out_of_memory(ledger_.entries().live());
  if (!left) return;  // more are here than may be by now
  if (*left == 0) return session_.owner.on_out_of_memory(error.message);
  log_warning("stage ", session_.spec.stage, ": memory ended in a pass: from now on it takes ", *left,
              " microbatches at a time at most. HINT: end other programs; ",
              smaller_run_text(*session_.config, session_.spec));
}

void EntryJobs::note_refused(EntrySerial serial, const Error& error, RefusalCause not_finite, std::string_view role) {
  const Entry& entry = *ledger_.entries().find(serial);
  const RefusalCause otherwise = error.code == ErrorCode::kTooLarge ? RefusalCause::kMemory : RefusalCause::kOther;
  if (entry.kind == ForwardKind::kTrain)
    meters_.refused(entry.microbatch.serial, error.code == ErrorCode::kNonFinite ? not_finite : otherwise);
  session_.events.write(entry_event(EventKind::kRefused, entry.microbatch, EntryName{session_.self, serial},
                                    std::string(name_of(error.code)) + " " + std::string(role) +
                                        (entry.above.empty() ? "" : " from " + short_name(entry.above.back()))));
}

}  // namespace shoal
