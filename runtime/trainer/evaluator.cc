#include "runtime/trainer/evaluator.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/trainer_id.h"
#include "compression/codec.h"
#include "runtime/plan/flight_plan.h"

namespace shoal {

Evaluator::Evaluator(Environment environment)
    : env_(std::move(environment)),
      trainer_(evaluation_id_of(env_.trainer_id, env_.self.incarnation)),
      in_flight_(evaluations_in_flight(env_.config)) {}

void Evaluator::validate(std::vector<Version> versions, std::function<void(double)> done) {
  SHOAL_CHECK(versions.size() == env_.config.pipeline.stages);
  begin({.versions = std::move(versions), .finished = std::move(done)}, env_.config.data.validation_samples);
}

void Evaluator::estimate(StepId step) {
  if (present_) return;  // the one before takes longer than validate_every steps
  begin({.finished = [this](double loss) { last_estimate_ = loss; }, .estimate = step}, env_.config.estimate_samples());
}

void Evaluator::begin(Evaluation evaluation, std::uint64_t samples_max) {
  evaluation.first = evaluation.next = env_.samples.training();
  evaluation.end = env_.samples.count();
  if (samples_max > 0) evaluation.end = std::min(evaluation.end, evaluation.next + samples_max);
  evaluation.first_serial = used_;
  present_ = std::move(evaluation);
  go_on();
}

void Evaluator::stop() {
  present_.reset();
  for (const auto& [microbatch, frame] : std::exchange(frames_, {})) env_.courier.close(microbatch);
}

void Evaluator::stop_estimate() {
  if (present_ && present_->estimate) stop();
}

void Evaluator::on_won(const MicrobatchId& microbatch, const Gradient& gradient) {
  if (!present_) return;
  present_->loss_sum += gradient.loss_sum;
  present_->targets += gradient.targets;
  ++present_->done;
  if (!present_->estimate) env_.validated(present_->done, present_->end - present_->first);
  env_.loop.post(env_.lifetime.guard([this, microbatch] {
    env_.courier.forget(microbatch);
    frames_.erase(microbatch);
    go_on();
  }));
}

void Evaluator::end() {
  const Evaluation ended = *std::exchange(present_, std::nullopt);
  const double loss = ended.loss_sum / static_cast<double>(ended.targets);
  if (ended.estimate)
    env_.events.write({.event = EventKind::kEstimate, .step = ended.estimate, .loss = loss, .targets = ended.targets});
  else
    env_.events.write(
        {.event = EventKind::kValidation, .versions = ended.versions, .loss = loss, .targets = ended.targets});
  ended.finished(loss);
}

void Evaluator::go_on() {
  if (!present_) return;
  Evaluation& present = *present_;
  if (present.done == present.end - present.first) return end();
  // While it trains the pipe is full of what is trained on: one a stage is what passes beside it.
  const std::uint64_t under_way = present.estimate ? env_.config.pipeline.stages : in_flight_;
  while (present.next < present.end && present.next - present.first - present.done < under_way) {
    const SampleId sample(present.next++);
    const MicrobatchId id{trainer_, used_++};
    auto frame = codec_for(CodecId::kRaw).encode(env_.samples.tokens(sample).view(), TensorRole::kTokens);
    SHOAL_CHECK(frame.ok());
    frames_[id] = *std::move(frame);
    HopSpec spec;
    spec.microbatch = id;
    spec.sample = sample;
    spec.kind = ForwardKind::kEvaluate;
    spec.versions = present.versions;
    spec.to = StageId(0);
    spec.above = {env_.self};
    env_.courier.open(std::move(spec), env_.loop.now());
  }
}

}  // namespace shoal
