#include "runtime/config/derived_options.h"

#include <algorithm>
#include <cmath>

#include "common/formatted.h"
#include "runtime/config/microbatch_size.h"
#include "stages/adapters.h"
#include "stages/boundary.h"
#include "stages/stage_spec.h"

namespace shoal {
namespace {

constexpr double kStepLawFactor = 0.58, kStepLawPower = 0.571;
constexpr std::uint64_t kBatchWithoutEnd = 8192;  // targets of a replica
constexpr double kSamplesMax = 1e18;              // of the table of options
constexpr double kRateOfSmall = 6e-4, kParametersOfSmall = 85e6, kRatePower = 0.25;
constexpr double kRateMin = 1e-5, kRateMax = 4e-3, kRateOfTrained = 0.2;
constexpr double kWarmupMin = 0.02, kWarmupMax = 0.1;

double real(std::uint64_t count) { return static_cast<double>(count); }

std::uint64_t replicas(const RunConfig& c) { return std::max<std::uint64_t>(1, c.pipeline.replicas); }
std::uint64_t microbatch(const RunConfig& c) { return std::max<std::uint64_t>(1, c.targets_per_microbatch()); }

// The length of the schedule, where it is given in tokens; what steps come to depends on the batch.
std::uint64_t known_targets(const RunConfig& c) {
  if (c.schedule.tokens > 0) return c.schedule.tokens;
  return c.schedule.steps > 0 ? 0 : c.end.tokens;
}

// Targets of a step of all replicas.
double batch_of(const RunConfig& c) {
  const std::uint64_t targets = known_targets(c);
  return targets == 0 ? real(kBatchWithoutEnd * replicas(c)) : kStepLawFactor * std::pow(real(targets), kStepLawPower);
}

// The same, or what is given.
double batch_to_cut(const RunConfig& c) {
  const bool own = !traits_of(c.sync.rule).every_step && c.sync.inner_batch != kAuto<std::uint64_t>;
  return own ? real(c.sync.inner_batch) * real(replicas(c)) : batch_of(c);
}

// As many targets are judged as with the usual microbatches.
std::uint64_t samples_as_usual(const SamplesSection& data) {
  const double usual = std::min(real(data.validation_samples), kSamplesMax / kSequencesUsual) * kSequencesUsual;
  return static_cast<std::uint64_t>(std::ceil(usual / real(data.sequences)));
}

std::uint64_t whole(double count, std::uint64_t most) {
  return static_cast<std::uint64_t>(std::clamp(std::round(count), 1.0, real(std::max<std::uint64_t>(1, most))));
}

// A round is to fit, see check_config.
std::uint64_t inner_batch_of(const RunConfig& c) {
  const std::uint64_t steps = std::max<std::uint64_t>(1, c.sync.inner_steps);
  return whole(batch_of(c) / real(replicas(c)) / real(microbatch(c)),
               RunConfig::kRoundMicrobatchesMax / steps / replicas(c)) *
         microbatch(c);
}

// A Step is to fit into a message.
std::uint64_t microbatches_per_step_of(const RunConfig& c) {
  const std::uint64_t room = RunConfig::paths_in_message(std::max<std::uint16_t>(1, c.pipeline.stages));
  return whole(std::max(batch_of(c) / real(microbatch(c)), real(replicas(c))),
               std::min(RunConfig::kStepMicrobatchesMax, room));
}

// The layers alone, without embedding and head: those of a stage in the middle that has them all.
double layer_parameters(const RunConfig& c) {
  const ModelSpec model = without_boundary(base_of(c.model_spec()));
  if (!split_model(model, 1).ok()) return kParametersOfSmall;
  return real(
      parameter_count({.model = model, .stage = StageId{1}, .stages = 3, .first_layer = 0, .end_layer = model.layers}));
}

double peak_rate(const RunConfig& c) {
  const double rate = kRateOfSmall * std::pow(kParametersOfSmall / layer_parameters(c), kRatePower);
  const bool all_of_a_trained_one = !c.model.from.empty() && c.model.lora_rank == 0;
  const double taken = std::clamp(rate, kRateMin, kRateMax) * (all_of_a_trained_one ? kRateOfTrained : 1);
  return std::strtod(formatted("%.2g", taken).c_str(), nullptr);  // a number that people can copy
}

// Targets of a step of all replicas, behind a warm start.
std::uint64_t step_targets(const RunConfig& c) { return c.microbatches_of_step(c.sync.warm_steps) * microbatch(c); }

std::uint64_t warmup_of(const RunConfig& c) {
  const double step = real(step_targets(c));
  const double steps = 2 / (1 - std::min(c.optimizer.beta2, 0.999999));
  const double length = real(c.schedule_targets());
  if (length == 0) return static_cast<std::uint64_t>(steps * step);
  return static_cast<std::uint64_t>(std::clamp(steps * step, kWarmupMin * length, kWarmupMax * length));
}

// A model that cannot be split gets no cuts, and check_config says why.
void derive_boundary(RunConfig& c) {
  if (!has_boundary(c.model)) return;
  const auto plain = split_model(without_boundary(c.model_spec()), c.pipeline.stages, c.pipeline.layers_per_stage);
  if (c.model.cuts.empty() && plain.ok()) c.model.cuts = cuts_between(*plain);
  if (!c.model.boundary_table.given) c.model.boundary_table = usual_boundary_table(c.model_spec(), c.pipeline.stages);
}

}  // namespace

void derive_options(RunConfig& c) {
  derive_boundary(c);
  if (c.data.sequences == kAuto<std::uint32_t>) {
    c.data.sequences = sequences_of_microbatch(c, batch_to_cut(c));
    c.data.validation_samples = samples_as_usual(c.data);
  }
  if (c.sync.inner_batch == kAuto<std::uint64_t>) c.sync.inner_batch = inner_batch_of(c);
  if (c.sync.microbatches_per_step == kAuto<std::uint64_t>) c.sync.microbatches_per_step = microbatches_per_step_of(c);
  if (c.optimizer.lr == kAuto<double>) c.optimizer.lr = peak_rate(c);
  if (c.schedule.warmup_tokens == kAuto<std::uint64_t>) c.schedule.warmup_tokens = warmup_of(c);
}

CodecId codec_of(PayloadCodec payload) {
  constexpr CodecId kOf[] = {CodecId::kInt8, CodecId::kRaw, CodecId::kBf16, CodecId::kInt8, CodecId::kInt4};
  return kOf[static_cast<std::size_t>(payload)];
}

CodecId payload_codec(const RunConfig& c) {
  if (c.executor.kind != ExecutorKind::kTorch || traits_of(c.sync.rule).every_step) return CodecId::kRaw;
  return codec_of(c.sync.payload);
}

std::uint64_t inner_steps_of_run(const RunConfig& c) {
  return c.end_targets() / std::max<std::uint64_t>(1, step_targets(c));
}

std::string training_line(const RunConfig& c) {
  const std::uint64_t steps = inner_steps_of_run(c);
  return std::to_string(step_targets(c)) + " targets a step of all replicas, " + std::to_string(c.data.sequences) +
         " sequences a microbatch, " + (steps > 0 ? std::to_string(steps) + " steps, " : "") + "peak rate " +
         formatted("%.4g", c.optimizer.lr) + ", warm-up of " + std::to_string(c.schedule.warmup_tokens) + " tokens";
}

std::optional<std::string> few_steps_warning(const RunConfig& c) {
  const std::uint64_t steps = inner_steps_of_run(c);
  if (c.end_targets() == 0 || steps >= kInnerStepsWanted || c.executor.kind != ExecutorKind::kTorch)
    return std::nullopt;
  const bool global = c.global_step(c.sync.warm_steps);
  return "the run has " + std::to_string(steps) + " inner steps, and fewer than " + std::to_string(kInnerStepsWanted) +
         " learn visibly less from the same tokens. HINT: raise [end] tokens, or lower [sync] " +
         (global ? "microbatches_per_step (now " + std::to_string(c.sync.microbatches_per_step)
                 : "inner_batch (now " + std::to_string(c.sync.inner_batch)) +
         ") or [data] sequences (now " + std::to_string(c.data.sequences) + ")";
}

}  // namespace shoal
