#include "runtime/config/config.h"

#include <algorithm>

#include "runtime/config/flight_plan.h"
#include "stages/schedule.h"
#include "transport/limits.h"

namespace shoal {

ModelSpec RunConfig::model_spec() const {
  return {.layers = model.layers,
          .dim = model.dim,
          .heads = model.heads,
          .positions = model.positions,
          .vocabulary = model.vocabulary,
          .seed = run.seed,
          .family = model.family};
}

DType RunConfig::token_dtype() const {
  constexpr DType kTypes[] = {DType::kU8, DType::kU16, DType::kU32};
  return kTypes[static_cast<std::size_t>(data.width)];
}

std::uint64_t RunConfig::microbatches_of_step(std::uint64_t step) const {
  if (sync.rule == RuleId::kAllreduce || step < sync.warm_steps) return sync.microbatches_per_step;
  const std::uint64_t targets = sync.inner_batch * pipeline.replicas;
  return (targets + targets_per_microbatch() - 1) / targets_per_microbatch();
}

std::uint64_t RunConfig::targets_of_steps(std::uint64_t steps) const {
  const std::uint64_t warm = sync.rule == RuleId::kAllreduce ? steps : std::min(steps, sync.warm_steps);
  const std::uint64_t microbatches = warm * sync.microbatches_per_step + (steps - warm) * microbatches_of_step(steps);
  return microbatches * targets_per_microbatch();
}

std::uint64_t RunConfig::microbatches_of_round() const {
  if (sync.rule == RuleId::kAllreduce) return sync.microbatches_per_step;
  return targets_per_round() * pipeline.replicas / targets_per_microbatch();
}

std::uint64_t RunConfig::id_window() const {
  return std::clamp(4 * std::min(microbatches_of_round(), kIdWindowMax), kIdWindowMin, kIdWindowMax);
}

std::size_t RunConfig::paths_in_message(std::size_t stages) {
  // As packed, serials below 2^32: the microbatch's id and the list's head; session and serial of each token.
  constexpr std::size_t kIdBytes = 19, kTokenBytes = 25, kRestBytes = 1024;
  return (limits::kControlBytesMax - kRestBytes) / (kIdBytes + kTokenBytes * stages);
}

std::uint64_t RunConfig::end_targets() const {
  const std::uint64_t by_steps = targets_of_steps(end.steps);
  if (end.tokens == 0) return by_steps;
  return by_steps == 0 ? end.tokens : std::min(end.tokens, by_steps);
}

std::uint64_t RunConfig::schedule_targets() const {
  if (schedule.tokens > 0) return schedule.tokens;
  if (schedule.steps > 0) return targets_of_steps(schedule.steps);
  return end_targets();
}

std::uint64_t RunConfig::in_flight() const {
  return pipeline.in_flight.given ? *pipeline.in_flight.given : choose_in_flight(*this);
}

std::optional<FlightRamp> RunConfig::flight_ramp() const { return ramp_of(*this, in_flight()); }

std::uint64_t RunConfig::fewest_in_flight() const { return fewest_of(*this, in_flight()); }

FlightLimits RunConfig::flight_limits() const {
  const std::uint64_t full = in_flight();
  const FlightRamp ramp = ramp_of(*this, full).value_or(FlightRamp{});
  const double length = static_cast<double>(schedule_targets());
  return {.full = full, .fewest = fewest_of(*this, full), .begin = ramp.begin * length, .end = ramp.end * length};
}

std::uint64_t RunConfig::estimate_samples() const {
  constexpr std::uint64_t kMost = 64;
  return data.validation_samples == 0 ? kMost : std::min(data.validation_samples, kMost);
}

std::uint64_t RunConfig::evaluations_in_flight() const { return std::max(in_flight(), fill_of(*this)); }

std::uint64_t FlightLimits::at(std::uint64_t run_targets) const {
  const double now = static_cast<double>(run_targets);
  if (now >= end) return full;
  if (now <= begin) return fewest;
  const double part = (now - begin) / (end - begin);
  return fewest + static_cast<std::uint64_t>(part * static_cast<double>(full - fewest));
}

double RunConfig::full_in_flight_share(std::uint64_t run_targets) const {
  const std::optional<FlightRamp> ramp = flight_ramp();
  if (!ramp || fewest_in_flight() == in_flight()) return 1;
  const double end = ramp->end * static_cast<double>(schedule_targets());
  const double now = static_cast<double>(run_targets);
  return now <= end ? 0 : (now - end) / now;
}

InnerStep RunConfig::inner_step(std::uint64_t step, std::uint64_t targets, std::uint64_t run_targets, bool late) const {
  InnerStep inner;
  if (const std::uint64_t length = schedule_targets(); length > 0) {
    inner.lr = learning_rate({.peak_lr = optimizer.lr,
                              .final_lr = optimizer.lr * schedule.min_lr_factor,
                              .warmup_tokens = schedule.warmup_tokens,
                              .tokens = length},
                             run_targets);
  } else {
    const auto warmup = static_cast<double>(schedule.warmup_tokens);
    const double warm = warmup == 0 ? 1.0 : static_cast<double>(run_targets) / warmup;
    inner.lr = optimizer.lr * std::clamp(warm, schedule.min_lr_factor, 1.0);
  }
  inner.beta1 = optimizer.beta1;
  inner.beta2 = optimizer.beta2;
  inner.eps = optimizer.eps;
  inner.weight_decay = optimizer.weight_decay;
  inner.clip_norm = optimizer.clip_norm;
  inner.muon = optimizer.inner == InnerRule::kMuon;
  inner.targets = targets;
  inner.step = step;
  // A first update is lr in every element, whatever the gradient's size: nothing to be repeated at once.
  inner.look_ahead = step > 1 ? look_ahead_of(late) : 0;
  inner.look_ahead_before = step > 2 ? inner.look_ahead : 0;
  return inner;
}

}  // namespace shoal
