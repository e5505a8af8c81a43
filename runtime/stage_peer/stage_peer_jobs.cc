// What the device does for entries and windows.
#include <algorithm>

#include "common/fault.h"
#include "common/log.h"
#include "compression/codec.h"
#include "kernels/accumulate.h"
#include "runtime/stage_peer/stage_peer_parts.h"
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
  Result<HostTensor> input(FrameCoder* coder, ByteView frame) const {
    return coder == nullptr ? activation(frame) : coder->decode(frame, DType::kF32, activation_shape());
  }
  Shape activation_shape() const {
    return {sequences(), std::int64_t{spec.model.positions}, std::int64_t{spec.model.dim}};
  }
};

}  // namespace

void StagePeer::on_device(DeviceTask task, std::function<void()> job, std::function<void()> after) {
  SHOAL_CHECK(!device_busy_);
  device_busy_ = true;
  env_.device.run(task, std::move(job), [this, alive = alive_, after = std::move(after)] {
    if (!*alive) return;
    device_busy_ = false;
    ++progress_;
    after();
    pump();
  });
}

void StagePeer::run_on_device(DeviceTask task, std::function<void(StageExecutor&)> job, std::function<void()> done) {
  waiting_->plain.push_back({task, std::move(job), std::move(done)});
  pump();
}

void StagePeer::pump() {
  if (stopped_ || device_busy_) return;
  if (!waiting_->plain.empty()) {
    auto plain = std::move(waiting_->plain.front());
    waiting_->plain.erase(waiting_->plain.begin());
    on_device(
        plain.task, [executor = env_.executor, job = std::move(plain.job)] { job(*executor); }, std::move(plain.done));
    return;
  }
  if (!serving_) return;
  if (leaving_) ledger_.flush();
  if (const auto release = ledger_.release_job()) return start(*release);
  if (pump_round()) return;
  if (const auto job = ledger_.next_job(shift_pending_)) start(*job);
}

void StagePeer::start(const Job& job) {
  switch (job.kind) {
    case JobKind::kForward:
      return start_forward(job.serial, false);
    case JobKind::kEvaluate:
      return start_forward(job.serial, true);
    case JobKind::kBackward:
      return start_backward(job);
    case JobKind::kInnerStep:
    case JobKind::kApplyShift:
      return start_write(job);
    case JobKind::kUndo: {
      auto exact = std::make_shared<Result<bool>>(false);
      return on_device(
          DeviceTask::kUndo,
          [executor = env_.executor, job, exact] {
            *exact = executor->undo(job.serial);
            if (job.empties) executor->clear_window(job.slot);
          },
          [this, serial = job.serial, exact] {
            if (!exact->ok()) return owner_.on_session_lost("an undo failed: " + exact->error().message);
            ledger_.undo_done(serial, **exact);
          });
    }
    case JobKind::kRelease:
      return on_device(
          DeviceTask::kRelease,
          [executor = env_.executor, job] {
            for (const EntrySerial serial : job.settled) executor->settle(serial);
            for (const EntrySerial serial : job.dropped) executor->drop(serial);
          },
          [] {});
  }
}

void StagePeer::start_forward(EntrySerial serial, bool evaluate) {
  struct Outcome {
    Result<ForwardOutput> output = make_error(ErrorCode::kMalformed, "");
    Bytes frame;
    HostTensor activation;
    bool base_missing = false;
  };
  auto tensors = tensors_.at(serial);
  auto outcome = std::make_shared<Outcome>();
  const TimePoint started = env_.loop.now();
  on_device(
      evaluate ? DeviceTask::kEvaluate : DeviceTask::kForward,
      [executor = env_.executor, tensors, outcome, serial, evaluate, config = options_.config, spec = options_.spec,
       coder = env_.coder] {
        SHOAL_FAULT("peer.forward");
        const Decoder decoder{*config, spec};
        ForwardInput input;
        input.entry = serial;
        input.microbatch = tensors->microbatch;
        auto tokens = decoder.tokens(tensors->input.front());
        if (!tokens.ok()) {
          outcome->output = tokens.error();
          return;
        }
        input.tokens = *std::move(tokens);
        if (!spec.is_first()) {
          auto activation = decoder.input(coder, tensors->input.back());
          if (!activation.ok()) {
            outcome->output = activation.error();
            outcome->base_missing = activation.code() == ErrorCode::kGone;
            return;
          }
          input.activation = *std::move(activation);
        }
        outcome->output = evaluate ? executor->evaluate(input) : executor->forward(input);
        if (!outcome->output.ok() || spec.is_last()) return;
        // What is evaluated is the model that is saved, whatever training's codec loses.
        const CodecId codec = evaluate ? CodecId::kRaw : config->wire.forward.at(spec.stage);
        auto frame = codec_for(codec).encode(outcome->output->activation.view(), TensorRole::kActivation);
        if (!frame.ok()) {
          outcome->output = frame.error();
          if (!evaluate) executor->drop(serial);
          return;
        }
        outcome->frame = *std::move(frame);
        if (coder != nullptr) outcome->activation = std::move(outcome->output->activation);
        outcome->output->activation = {};
      },
      [this, serial, tensors, outcome, started] {
        if (outcome->base_missing && ledger_.base_missing(serial)) return;
        const bool ok = outcome->output.ok();
        if (!ok) {
          log_warning("forward of microbatch ", tensors->microbatch, " failed: ", outcome->output.error().message);
          note_refused(serial, name_of(outcome->output.code()), "activation");
        }
        count_frame(outcome->frame.size());
        tensors->output = outcome->frame;
        tensors->activation = std::move(outcome->activation);
        ledger_.forward_done(serial, ok, ok ? outcome->output->loss_sum : 0, ok ? outcome->output->targets : 0,
                             microseconds_of(env_.loop.now() - started), env_.loop.now());
        SHOAL_FAULT("peer.after_forward");
      });
}

void StagePeer::start_backward(const Job& job) {
  struct Outcome {
    Result<BackwardOutput> output = make_error(ErrorCode::kMalformed, "");
    Bytes frame;
    bool bad_input = false;
  };
  const EntrySerial serial = job.serial;
  auto tensors = tensors_.at(serial);
  auto outcome = std::make_shared<Outcome>();
  const TimePoint started = env_.loop.now();
  on_device(
      DeviceTask::kBackward,
      [executor = env_.executor, tensors, outcome, job, config = options_.config, spec = options_.spec] {
        const Decoder decoder{*config, spec};
        HostTensor gradient;
        if (!spec.is_last()) {
          auto decoded = decoder.activation(tensors->gradient_in);
          if (decoded.ok() && !all_finite(decoded->f32()))
            decoded = make_error(ErrorCode::kNonFinite, "the gradient that came holds a value that is not finite");
          if (!decoded.ok()) {
            outcome->output = decoded.error();
            outcome->bad_input = true;
            return;
          }
          gradient = *std::move(decoded);
        }
        outcome->output = executor->backward(job.serial, gradient, job.slot);
        if (!outcome->output.ok() || spec.is_first()) return;
        const StageId before(static_cast<std::uint16_t>(spec.stage.value - 1));
        auto frame =
            codec_for(config->wire.backward.at(before)).encode(outcome->output->gradient.view(), TensorRole::kGradient);
        outcome->output->gradient = {};
        SHOAL_CHECK(frame.ok());  // the executor screened it
        outcome->frame = *std::move(frame);
      },
      [this, serial, tensors, outcome, started] {
        const TimePoint now = env_.loop.now();
        if (outcome->bad_input) {
          const auto from = courier_.won_by(tensors->microbatch);
          log_warning("gradient of microbatch ", tensors->microbatch, " from ", from ? short_name(*from) : "?",
                      " refused: ", outcome->output.error().message);
          ledger_.gradient_rejected(serial);
          courier_.reject(tensors->microbatch, std::string(name_of(outcome->output.code())) + " gradient", now);
          return;
        }
        const bool ok = outcome->output.ok();
        if (!ok) {
          log_warning("backward of microbatch ", tensors->microbatch, " failed: ", outcome->output.error().message);
          note_refused(serial, name_of(outcome->output.code()), "gradient made here, of an activation");
        }
        count_frame(outcome->frame.size());
        tensors->gradient_out = outcome->frame;
        tensors->gradient_in = {};
        ledger_.backward_done(serial, ok, ok ? outcome->output->stamp : 0, ok && outcome->output->recomputed,
                              microseconds_of(now - started), now);
      });
}

void StagePeer::note_refused(EntrySerial serial, std::string_view why, std::string_view role) {
  const Ledger::Entry& entry = *ledger_.find(serial);
  write(entry_event(EventName::kRefused, entry.microbatch, EntryName{options_.self, serial},
                    std::string(why) + " " + std::string(role) +
                        (entry.above.empty() ? "" : " from " + short_name(entry.above.back()))));
}

void StagePeer::count_frame(std::size_t bytes) {
  if (bytes == 0) return;  // a failed job, or an end of the pipeline
  payload_bytes_ += bytes;
  fp32_bytes_ += options_.config->targets_per_microbatch() * options_.config->model.dim * sizeof(float);
}

void StagePeer::start_write(const Job& job) {
  struct Outcome {
    Result<InnerStepResult> result = InnerStepResult{};
    bool shift_pending = false;
    CountTag tag = 0;
  };
  auto outcome = std::make_shared<Outcome>();
  if (job.kind == JobKind::kApplyShift) {
    on_device(
        DeviceTask::kWrite,
        [executor = env_.executor, outcome] {
          outcome->result = executor->apply_shift();
          outcome->shift_pending = executor->shift_pending();
        },
        [this, outcome] {
          shift_pending_ = outcome->shift_pending;
          ledger_.wrote(outcome->result->stamp);
        });
    return;
  }
  const InnerStep step = options_.config->inner_step(adam_step_ + 1, job.targets, job.run_targets);
  on_device(
      DeviceTask::kWrite,
      [executor = env_.executor, outcome, slot = job.slot, step] {
        outcome->result = executor->inner_step(slot, step);
        outcome->shift_pending = executor->shift_pending();
        outcome->tag = executor->arena().tag(ArenaRole::kCurrent);
      },
      [this, outcome, slot = job.slot, targets = job.targets] {
        if (!outcome->result.ok())
          return owner_.on_session_lost("an inner step failed: " + outcome->result.error().message);
        ++inner_steps_;
        ++adam_step_;
        graphs_dropped_ += outcome->result->graphs_dropped;
        shift_pending_ = outcome->shift_pending;
        std::vector<EntryName> entries;
        for (const auto& [serial, entry] : ledger_.window(slot)->entries) entries.push_back({options_.self, serial});
        write({.event = EventName::kStepped,
               .window = slot,
               .tag = outcome->tag,
               .entries = std::move(entries),
               .targets = targets});
        ledger_.step_done(slot, outcome->result->stamp);
        owner_.on_inner_step();
      });
}

}  // namespace shoal
