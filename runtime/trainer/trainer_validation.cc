// Losses of samples that nothing is trained on: of the run's last anchors, and estimates while it trains.
#include <algorithm>

#include "compression/codec.h"
#include "runtime/trainer/trainer.h"

namespace shoal {

void Trainer::validate(std::vector<Version> versions, std::function<void(Result<double>)> done) {
  SHOAL_CHECK(versions.size() == options_.config.pipeline.stages);
  begin_evaluation({.versions = std::move(versions), .finished = std::move(done)},
                   options_.config.data.validation_samples);
}

void Trainer::estimate(StepId step) {
  if (evaluation_ || finishing_) return;  // the one before takes longer than validate_every steps
  begin_evaluation({.finished = [this](double loss) { last_estimate_ = loss; }, .estimate = step},
                   options_.config.estimate_samples());
}

void Trainer::begin_evaluation(Evaluation evaluation, std::uint64_t samples_max) {
  evaluation.first = evaluation.next = env_.samples.training();
  evaluation.end = env_.samples.count();
  if (samples_max > 0) evaluation.end = std::min(evaluation.end, evaluation.next + samples_max);
  evaluation.first_serial = evaluations_;
  evaluation_ = std::move(evaluation);
  next_evaluations();
}

void Trainer::stop_validation() {
  evaluation_.reset();
  release_open(evaluation_trainer());
}

void Trainer::on_evaluated(const MicrobatchId& microbatch, const Gradient& gradient) {
  if (!evaluation_) return;
  evaluation_->loss_sum += gradient.loss_sum;
  evaluation_->targets += gradient.targets;
  ++evaluation_->done;
  if (!evaluation_->estimate) owner_.on_validated(evaluation_->done, evaluation_->end - evaluation_->first);
  env_.loop.post(lifetime_.guard([this, microbatch] {
    courier_.forget(microbatch);
    frames_.erase(microbatch);
    next_evaluations();
  }));
}

void Trainer::end_evaluation() {
  Evaluation e = *std::exchange(evaluation_, std::nullopt);
  const double loss = e.loss_sum / static_cast<double>(e.targets);
  if (e.estimate)
    write({.event = EventKind::kEstimate, .step = e.estimate, .loss = loss, .targets = e.targets});
  else
    write({.event = EventKind::kValidation, .versions = e.versions, .loss = loss, .targets = e.targets});
  e.finished(loss);
}

void Trainer::next_evaluations() {
  if (!evaluation_) return;
  Evaluation& e = *evaluation_;
  if (e.done == e.end - e.first) return end_evaluation();
  // While it trains the pipe is full of what is trained on: one a stage is what passes beside it.
  const std::uint64_t under_way = e.estimate ? options_.config.pipeline.stages : evaluations_in_flight_;
  while (e.next < e.end && e.next - e.first - e.done < under_way) {
    const SampleId sample(e.next++);
    const MicrobatchId id{evaluation_trainer(), evaluations_++};
    auto frame = codec_for(CodecId::kRaw).encode(env_.samples.tokens(sample).view(), TensorRole::kTokens);
    SHOAL_CHECK(frame.ok());
    frames_[id] = *std::move(frame);
    HopSpec spec;
    spec.microbatch = id;
    spec.sample = sample;
    spec.kind = ForwardKind::kEvaluate;
    spec.versions = e.versions;
    spec.to = StageId(0);
    spec.above = {options_.self};
    courier_.open(std::move(spec), env_.loop.now());
  }
}

}  // namespace shoal
