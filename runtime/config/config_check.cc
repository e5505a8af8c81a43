// Options of RUN.toml that exclude or bound each other.
#include <algorithm>
#include <cctype>

#include "compression/codec.h"
#include "runtime/config/config_table.h"
#include "runtime/config/derived_options.h"
#include "stages/schedule.h"

namespace shoal {
namespace {

constexpr double kRunTargetsMax = 1e18;

Error input_error(std::string message) { return make_error(ErrorCode::kInput, std::move(message)); }

// What is multiplied later must not overflow.
Status check_products(const RunConfig& c, const std::string& origin) {
  const double warm = static_cast<double>(c.sync.microbatches_per_step * c.targets_per_microbatch());
  const double step = std::max(warm, static_cast<double>(c.microbatches_of_step(c.sync.warm_steps)) *
                                         static_cast<double>(c.targets_per_microbatch()));
  for (const auto& [name, steps] :
       {std::pair("[end] steps", c.end.steps), std::pair("[schedule] steps", c.schedule.steps)}) {
    if (static_cast<double>(steps) * step <= kRunTargetsMax) continue;
    return input_error(origin + ": " + name + " = " + std::to_string(steps) + " of " + number_text(step) +
                       " tokens each are more than " + number_text(kRunTargetsMax) +
                       " tokens: lower it, or the batch of a step in [sync]");
  }
  return {};
}

Status check_edges(const RunConfig& c, const std::string& origin) {
  for (const auto& [name, edges] : {std::pair("forward", &c.wire.forward), std::pair("backward", &c.wire.backward)}) {
    const std::size_t wanted = c.pipeline.stages - 1u;
    if (!edges->per_stage || edges->codecs.size() == wanted) continue;
    return input_error(origin + ": [wire] " + name + " lists " + std::to_string(edges->codecs.size()) +
                       " codecs, but " + std::to_string(c.pipeline.stages) + " stages have " + std::to_string(wanted) +
                       " edges: give one name for each of them, or one name for all");
  }
  for (const CodecId codec : c.wire.backward.named())
    if (is_delta(codec))
      return input_error(
          origin + ": [wire] backward = \"" + std::string(codec_for(codec).name()) +
          "\" sends differences to the last activation of a sample, and a gradient is not like the one " +
          "before it: give int8 or bf16, and \"" + std::string(codec_for(codec).name()) + "\" for forward");
  return {};
}

// The executors that measure a swarm send whole numbers, and refuse what differs from them.
Status check_executor(const RunConfig& c, const std::string& origin) {
  if (c.executor.kind == ExecutorKind::kTorch) return {};
  for (const auto& [name, edges] : {std::pair("forward", &c.wire.forward), std::pair("backward", &c.wire.backward)}) {
    for (const CodecId codec : edges->named()) {
      if (keeps_whole_numbers(codec)) continue;
      return input_error(origin + ": [wire] " + name + " = \"" + std::string(codec_for(codec).name()) +
                         "\" does not keep the whole numbers that [executor] kind = \"integer\" and \"paced\" send: " +
                         "give raw, bf16, fp16 or int8, or kind = \"torch\"");
    }
  }
  return {};
}

// Whole numbers have one type, travel as they are, and keep no graph that could be made again.
Status check_ignored(const RunConfig& c, const std::string& origin) {
  if (c.executor.kind == ExecutorKind::kTorch) return {};
  const auto refuse = [&](const std::string& section, const std::string& key, std::string_view value) {
    return input_error(origin + ": [" + section + "] " + key + " = \"" + std::string(value) +
                       "\" is of [executor] kind = \"torch\" alone, \"integer\" and \"paced\" would ignore it: leave " +
                       key + " out, or give kind = \"torch\"");
  };
  if (c.compute.dtype != ComputeType::kFp32)
    return refuse("compute", "dtype", kComputeNames[static_cast<std::size_t>(c.compute.dtype)]);
  if (c.compute.recompute == Recompute::kStage || c.compute.recompute == Recompute::kBlock)
    return refuse("compute", "recompute", name_of(c.compute.recompute));
  if (c.sync.payload != PayloadCodec::kAuto && c.sync.payload != PayloadCodec::kFp32)
    return refuse("sync", "payload", codec_for(codec_of(c.sync.payload)).name());
  return {};
}

// What measures a swarm has no model's parameters that could be given away.
Status check_first_weights(const RunConfig& c, const std::string& origin) {
  if (!c.model.from.empty() && c.executor.kind != ExecutorKind::kTorch)
    return input_error(origin + ": [model] from is of [executor] kind = \"torch\" alone: leave one of them out");
  if (c.model.weights.empty() || c.model.weights.size() == c.pipeline.stages) return {};
  return input_error(origin + ": [model] weights lists " + std::to_string(c.model.weights.size()) + " digests for " +
                     std::to_string(c.pipeline.stages) + " stages: leave it out, launch writes it");
}

// The ramp goes by the schedule, and there is lateness to spare only where gradients are made at older weights.
Status check_ramp(const RunConfig& c, const std::string& origin) {
  if (!c.pipeline.in_flight_ramp.given || c.pipeline.in_flight_ramp.given->empty()) return {};
  const std::vector<double>& ramp = *c.pipeline.in_flight_ramp.given;
  const std::string name = origin + ": [pipeline] in_flight_ramp";
  if (ramp.size() != 2 || ramp[0] < 0 || ramp[0] > ramp[1] || ramp[1] > 1) {
    std::string given;
    for (const double share : ramp) given += (given.empty() ? "" : ", ") + number_text(share);
    return input_error(name + " = [" + given +
                       "] is out of bounds: give begin and end, 0 <= begin <= end <= 1, or [] for none");
  }
  if (c.schedule_targets() == 0) {
    return input_error(name +
                       " is of a schedule, and this run has none: give [end] tokens or steps, or [schedule] "
                       "tokens or steps, or in_flight_ramp = []");
  }
  if (c.sync.mode == SyncMode::kDrain) {
    return input_error(name +
                       " does not go with [sync] mode = \"drain\", whose gradients are never late: give "
                       "in_flight_ramp = []");
  }
  return {};
}

// A STEP names the whole path of each of its microbatches in one message.
Status check_step_message(const RunConfig& c, const std::string& origin) {
  const std::size_t room = RunConfig::paths_in_message(c.pipeline.stages);
  if (!c.global_step(0) || c.sync.microbatches_per_step <= room) return {};
  return input_error(origin + ": [sync] microbatches_per_step = " + std::to_string(c.sync.microbatches_per_step) +
                     " is too large for [pipeline] stages = " + std::to_string(c.pipeline.stages) +
                     ": one message has room for " + std::to_string(room) + " paths of that length");
}

// `paths` is of the launching machine and no part of a manifest, where it is empty.
Status check_text(const RunConfig& c, const std::string& origin) {
  const SamplesSection& data = c.data;
  if (!data.weights.empty() && !data.paths.empty() && data.weights.size() != data.paths.size())
    return input_error(origin + ": [data] weights has " + std::to_string(data.weights.size()) + " numbers for the " +
                       std::to_string(data.paths.size()) +
                       " files of path: give one for each, or [] for shares by size");
  for (const double weight : data.weights) {
    if (weight > 0) continue;
    return input_error(origin + ": [data] weights has " + number_text(weight) +
                       ": give each file a share above 0, and leave a file out that has none");
  }
  return {};
}

}  // namespace

Status check_config(const RunConfig& c, const std::string& origin) {
  const auto refuse = [&](std::string why) -> Status { return input_error(origin + ": " + std::move(why)); };
  for (char ch : c.run.name) {
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0 && ch != '.' && ch != '_' && ch != '-') {
      return refuse("[run] name = \"" + c.run.name + "\" may hold only letters, digits, '.', '_' and '-'");
    }
  }
  const std::size_t bits = 8 * size_of(c.token_dtype());
  if (bits == 8 && c.model.vocabulary < 256) {
    return refuse("[model] vocabulary = " + std::to_string(c.model.vocabulary) +
                  " is too small for [data] width = \"u8\": give 256");
  }
  if (const std::uint64_t ids = std::uint64_t{1} << bits; c.model.vocabulary > ids) {
    return refuse("[model] vocabulary = " + std::to_string(c.model.vocabulary) + ", but the ids of [data] width = \"u" +
                  std::to_string(bits) + "\" are below " + std::to_string(ids) + "; did you mean width = \"" +
                  (c.model.vocabulary > 1u << 16 ? "u32" : "u16") + "\"?");
  }
  if (c.admission.mode == AdmissionMode::kKeys && c.admission.keys.empty()) {
    return refuse(
        "[admission] mode = \"keys\" with no keys would admit nobody: list what `shoal key` prints on the machines");
  }
  if (c.admission.mode == AdmissionMode::kOpen && !c.admission.keys.empty()) {
    return refuse("[admission] keys lists " + std::to_string(c.admission.keys.size()) +
                  " keys, but mode = \"open\" admits everybody: give mode = \"keys\", or leave keys out");
  }
  if (c.timing.membership_s < c.timing.lease_s) {
    return refuse("[timing] membership_s must be at least lease_s, else a peer is fenced while its leases live");
  }
  const auto split = split_model(c.model_spec(), c.pipeline.stages, c.pipeline.layers_per_stage);
  if (!split.ok()) return refuse(split.error().message);
  SHOAL_TRY(check_text(c, origin));
  SHOAL_TRY(check_products(c, origin));
  SHOAL_TRY(check_edges(c, origin));
  SHOAL_TRY(check_executor(c, origin));
  SHOAL_TRY(check_ignored(c, origin));
  SHOAL_TRY(check_first_weights(c, origin));
  if (c.report.sample_every > 0 && c.data.validate_every == 0)
    return refuse("[report] sample_every counts validations, and there are none: give [data] validate_every");
  SHOAL_TRY(check_step_message(c, origin));
  SHOAL_TRY(check_ramp(c, origin));
  if (const std::uint64_t length = c.schedule_targets(); length > 0) {
    const Status schedule =
        check_schedule({c.optimizer.lr, c.optimizer.lr * c.schedule.min_lr_factor, c.schedule.warmup_tokens, length});
    if (!schedule.ok()) return refuse("[schedule] " + schedule.error().message);
  }
  if (const std::uint64_t round = c.microbatches_of_round(); round > RunConfig::kRoundMicrobatchesMax) {
    return refuse("a round would hold " + std::to_string(round) + " microbatches, allowed are " +
                  std::to_string(RunConfig::kRoundMicrobatchesMax) +
                  ": lower [sync] inner_steps or inner_batch, or raise [data] sequences");
  }
  return {};
}

}  // namespace shoal
