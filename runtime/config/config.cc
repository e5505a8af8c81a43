#include "runtime/config/config.h"

#include <algorithm>

#include "stages/schedule.h"
#include "transport/limits.h"

namespace shoal {

ModelSpec RunConfig::model_spec() const {
  ModelSpec spec = model;
  spec.seed = run.seed;
  spec.boundary_table = model.boundary_table.or_else(0);
  return spec;
}

DType RunConfig::token_dtype() const {
  constexpr DType kTypes[] = {DType::kU8, DType::kU16, DType::kU32};
  return kTypes[static_cast<std::size_t>(data.width)];
}

TextFiles RunConfig::text_files() const {
  std::optional<Digest> tokenizer;
  if (!data.tokenizer_digest.empty()) tokenizer = data.tokenizer_digest.front();
  return {.paths = data.paths,
          .weights = data.weights,
          .validation = data.validation,
          .tokenizer = data.tokenizer,
          .digests = data.digests,
          .tokenizer_digest = tokenizer,
          .width = token_dtype(),
          .vocabulary = model.vocabulary,
          .sequences = data.sequences,
          .positions = model.positions};
}

void RunConfig::name_text(std::vector<Digest> files, const std::optional<Digest>& tokenizer) {
  data.digests = std::move(files);
  data.tokenizer_digest.clear();
  if (tokenizer) data.tokenizer_digest.push_back(*tokenizer);
}

bool RunConfig::global_step(std::uint64_t step) const {
  return traits_of(sync.rule).every_step || step < sync.warm_steps;
}

std::uint64_t RunConfig::microbatches_of_step(std::uint64_t step) const {
  if (global_step(step)) return sync.microbatches_per_step;
  const std::uint64_t targets = sync.inner_batch * pipeline.replicas;
  return (targets + targets_per_microbatch() - 1) / targets_per_microbatch();
}

std::vector<CodecId> EdgeCodecs::named() const {
  std::vector<CodecId> result;
  for (const Auto<CodecId>& codec : codecs)
    if (codec.given) result.push_back(*codec.given);
  return result;
}

std::uint64_t RunConfig::microbatches_of_windows() const {
  const std::uint64_t one = std::max<std::uint64_t>(1, targets_per_microbatch());
  return std::max<std::uint64_t>(1, pipeline.replicas) * std::max<std::uint64_t>(1, (sync.inner_batch + one - 1) / one);
}

std::uint64_t RunConfig::targets_of_steps(std::uint64_t steps) const {
  const std::uint64_t warm = traits_of(sync.rule).every_step ? steps : std::min(steps, sync.warm_steps);
  const std::uint64_t microbatches = warm * sync.microbatches_per_step + (steps - warm) * microbatches_of_step(steps);
  return microbatches * targets_per_microbatch();
}

std::uint64_t RunConfig::microbatches_of_round() const {
  if (traits_of(sync.rule).every_step) return sync.microbatches_per_step;
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

std::uint64_t RunConfig::estimate_samples() const {
  constexpr std::uint64_t kSamples = 64, kSequences = 256;
  const std::uint64_t most = std::max(kSamples, kSequences / std::max<std::uint64_t>(1, data.sequences));
  return data.validation_samples == 0 ? most : std::min(data.validation_samples, most);
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
