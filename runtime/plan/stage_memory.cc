#include "runtime/plan/stage_memory.h"

#include <algorithm>

#include "runtime/plan/flight_plan.h"
#include "stages/adapters.h"

namespace shoal {
namespace {

constexpr std::uint64_t kArraysKept = 8, kArraysOfRound = 4, kScratchGradient = 1, kArraysOfImage = 2;
constexpr std::uint64_t kArrays = kArraysKept + kArraysOfRound + kScratchGradient + kArraysOfImage;
constexpr std::uint64_t kFloat = 4, kNarrow = 2;  // bytes
constexpr std::uint64_t kNarrowCopies = 3;        // of the parameters, in bf16

// What a backward needs of the layers of one microbatch.
std::uint64_t graph_bytes(const RunConfig& config, const StageSpec& spec) {
  const std::uint64_t layers = spec.end_layer - spec.first_layer;
  const std::uint64_t kept = row_of(spec.model.family).layer_kept(spec.model);
  const std::uint64_t residual = std::min<std::uint64_t>(kept, 2 * std::uint64_t{spec.model.dim});
  const bool narrow = config.compute.dtype == ComputeType::kBf16;
  const std::uint64_t of_layer = kFloat * residual + (narrow ? kNarrow : kFloat) * (kept - residual);
  return layers * of_layer * config.targets_per_microbatch();
}

bool keeps_graphs(const RunConfig& config, const StageSpec& spec) {
  return config.compute.recompute == Recompute::kNone || spec.is_last();
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

}  // namespace

std::uint64_t stage_bytes(const RunConfig& config, const StageSpec& spec) {
  // A base is there once, and once more while it comes.
  const std::uint64_t base = has_adapters(spec.model) ? parameter_count(base_of(spec)) : 0;
  const std::uint64_t narrow =
      config.compute.dtype == ComputeType::kBf16 ? kNarrow * (kNarrowCopies * parameter_count(spec) + base) : 0;
  return kFloat * (kArrays * parameter_count(spec) + 2 * base) + narrow +
         (keeps_graphs(config, spec) ? 0 : graph_bytes(config, spec));
}

std::uint64_t loss_bytes(const RunConfig& config, const StageSpec& spec) {
  if (!spec.is_last()) return 0;
  const ModelSpec& model = spec.model;
  const std::uint64_t rows = std::min<std::uint64_t>(loss_rows(model), config.targets_per_microbatch());
  return 2 * kFloat * model.vocabulary * (rows + (has_adapters(model) ? 0 : model.dim));
}

std::uint64_t entry_bytes(const RunConfig& config, const StageSpec& spec) {
  const std::uint64_t sent = kFloat * 4 * spec.model.dim * config.targets_per_microbatch();
  return sent + (keeps_graphs(config, spec) ? graph_bytes(config, spec) : 0);
}

std::uint64_t bases_bytes(const RunConfig& config, const StageSpec& spec) {
  const auto of_edge = [&](int edge) {
    const Auto<CodecId>& codec = config.wire.forward.at(StageId(static_cast<std::uint16_t>(edge)));
    return codec.given && is_delta(*codec.given) ? config.base_bytes() : 0;
  };
  const int stage = spec.stage.value;
  return (spec.is_first() ? 0 : of_edge(stage - 1)) + (spec.is_last() ? 0 : of_edge(stage));
}

std::uint64_t process_bytes(const RunConfig& config, const StageSpec& spec, std::size_t credits) {
  if (config.executor.kind != ExecutorKind::kTorch) return 0;
  const std::uint64_t entries = std::min<std::uint64_t>(credits, in_flight_most(config));
  return kProgramBytes + stage_bytes(config, spec) + loss_bytes(config, spec) + bases_bytes(config, spec) +
         entries * entry_bytes(config, spec);
}

std::uint64_t solo_bytes(const RunConfig& config, std::span<const StageSpec> specs) {
  std::uint64_t bytes = kProgramBytes, kept = 0, largest = 0;
  for (const StageSpec& spec : specs) {
    bytes += entry_bytes(config, spec) + loss_bytes(config, spec);
    if (keeps_graphs(config, spec)) kept += graph_bytes(config, spec);
    largest = std::max(largest, graph_bytes(config, spec));
  }
  return bytes + largest - std::min(kept, largest);
}

std::size_t usual_credits(const RunConfig& config) {
  const std::uint64_t replicas = std::max<std::uint64_t>(1, config.pipeline.replicas);
  return std::clamp<std::size_t>((in_flight_most(config) + replicas - 1) / replicas, kCreditsUsual, kCreditsMax);
}

Result<std::size_t> credits_within(std::uint64_t memory_bytes, const RunConfig& config, const StageSpec& spec) {
  const std::uint64_t fixed = stage_bytes(config, spec) + loss_bytes(config, spec) + bases_bytes(config, spec),
                      each = entry_bytes(config, spec);
  if (memory_bytes < fixed + 2 * each)
    return make_error(ErrorCode::kTooLarge, "stage " + std::to_string(spec.stage.value) + " needs about " +
                                                mebibytes(fixed + 2 * each) + " of memory, allowed are " +
                                                mebibytes(memory_bytes) + ": give more with --memory");
  return static_cast<std::size_t>(std::min<std::uint64_t>((memory_bytes - fixed) / each, kCreditsMax));
}

}  // namespace shoal
