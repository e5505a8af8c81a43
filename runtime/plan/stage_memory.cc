#include "runtime/plan/stage_memory.h"

#include <algorithm>

#include "runtime/plan/flight_plan.h"
#include "stages/adapters.h"

namespace shoal {
namespace {

constexpr std::uint64_t kArraysKept = 8, kArraysOfRound = 4, kScratchGradient = 1, kArraysOfImage = 2;
constexpr std::uint64_t kArrays = kArraysKept + kArraysOfRound + kScratchGradient + kArraysOfImage;
constexpr std::uint64_t kFloat = 4;

std::string mebibytes(std::uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

}  // namespace

std::uint64_t stage_bytes(const StageSpec& spec) {
  // A base is there once, and once more while it comes.
  const std::uint64_t base = has_adapters(spec.model) ? parameter_count(base_of(spec)) : 0;
  return kFloat * (kArrays * parameter_count(spec) + 2 * base);
}

std::uint64_t loss_bytes(const StageSpec& spec, std::uint32_t sequences) {
  if (!spec.is_last()) return 0;
  const ModelSpec& model = spec.model;
  const std::uint64_t rows = std::min<std::uint64_t>(loss_rows(model), std::uint64_t{sequences} * model.positions);
  return 2 * kFloat * model.vocabulary * (rows + (has_adapters(model) ? 0 : model.dim));
}

std::uint64_t entry_bytes(const StageSpec& spec, std::uint32_t sequences) {
  const FamilyRow& row = row_of(spec.model.family);
  const std::uint64_t layers = spec.end_layer - spec.first_layer;
  const std::uint64_t of_token = layers * row.layer_kept(spec.model) + std::uint64_t{4} * spec.model.dim;
  const std::uint64_t tokens = std::uint64_t{sequences} * spec.model.positions;
  return of_token * tokens * kFloat;
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
  return kProgramBytes + stage_bytes(spec) + loss_bytes(spec, config.data.sequences) + bases_bytes(config, spec) +
         entries * entry_bytes(spec, config.data.sequences);
}

std::size_t usual_credits(const RunConfig& config) {
  const std::uint64_t replicas = std::max<std::uint64_t>(1, config.pipeline.replicas);
  return std::clamp<std::size_t>((in_flight_most(config) + replicas - 1) / replicas, kCreditsUsual, kCreditsMax);
}

Result<std::size_t> credits_within(std::uint64_t memory_bytes, const RunConfig& config, const StageSpec& spec) {
  const std::uint32_t sequences = config.data.sequences;
  const std::uint64_t fixed = stage_bytes(spec) + loss_bytes(spec, sequences) + bases_bytes(config, spec),
                      each = entry_bytes(spec, sequences);
  if (memory_bytes < fixed + 2 * each)
    return make_error(ErrorCode::kTooLarge, "stage " + std::to_string(spec.stage.value) + " needs about " +
                                                mebibytes(fixed + 2 * each) + " of memory, allowed are " +
                                                mebibytes(memory_bytes) + ": give more with --memory");
  return static_cast<std::size_t>(std::min<std::uint64_t>((memory_bytes - fixed) / each, kCreditsMax));
}

}  // namespace shoal
