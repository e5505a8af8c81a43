#include "runtime/plan/split_limits.h"

#include <algorithm>
#include <string>

#include "common/formatted.h"
#include "state/state_image.h"
#include "sync/round_budget.h"
#include "transport/limits.h"

namespace shoal {
namespace {

std::string gib(std::uint64_t bytes) { return formatted("%.2f GiB", static_cast<double>(bytes) / (1 << 30)); }

}  // namespace

std::vector<std::uint64_t> payload_bytes(const RunConfig& config) {
  std::vector<std::uint64_t> bytes;
  if (config.executor.kind == ExecutorKind::kPaced && config.executor.state_mib > 0)
    return std::vector<std::uint64_t>(config.pipeline.stages, config.executor.state_mib << 20);
  const auto split = split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage);
  if (!split.ok()) return bytes;
  for (const StageSpec& stage : *split) bytes.push_back(parameter_count(stage) * sizeof(float));
  return bytes;
}

Status check_split_limits(const RunConfig& config) {
  // The anchor beside the shared arrays of the rule, or of that of the warm steps.
  const std::uint64_t arrays = 1 + std::max(traits_of(config.sync.rule).shared_arrays,
                                            config.sync.warm_steps > 0 ? traits_of(kWarmRule).shared_arrays : 0);
  const std::vector<std::uint64_t> payloads = payload_bytes(config);
  for (std::size_t stage = 0; stage < payloads.size(); ++stage) {
    const std::uint64_t payload = payloads[stage];
    // A stage of one sends nothing, until another one joins.
    const std::uint64_t members = std::max<std::uint64_t>(2, config.pipeline.replicas);
    const std::uint64_t part = part_bytes(payload, members), image = arrays * payload + kStateHeaderBytes;
    const bool part_fits = parts_fit(payload, members, members), image_fits = image <= kStateImageBytesMax;
    if (part_fits && image_fits) continue;
    return make_error(
        ErrorCode::kInput,
        "stage " + std::to_string(stage) + " of " + std::to_string(payloads.size()) + " has " +
            std::to_string(payload / sizeof(float) / 1'000'000) + " M parameters: " +
            (part_fits ? "its state is " + gib(image) + ", and a joiner fetches at most " + gib(kStateImageBytesMax)
                       : "a round among " + std::to_string(members) + " replicas sends " + gib(part) +
                             " at a time, and a transfer has at most " + gib(limits::kTransferBytesMax)) +
            ". HINT: raise [pipeline] stages, or even out [pipeline] layers_per_stage");
  }
  return {};
}

std::vector<std::string> split_warnings(const RunConfig& config) {
  std::vector<std::string> warnings;
  const std::vector<std::uint64_t> payloads = payload_bytes(config);
  for (std::size_t stage = 0; stage < payloads.size(); ++stage) {
    const std::size_t needed = members_needed(payloads[stage]);
    if (needed <= 2) continue;
    warnings.push_back("stage " + std::to_string(stage) + " makes rounds among " + std::to_string(needed) +
                       " replicas or more, or of one alone: among 2 a part would have " +
                       gib(part_bytes(payloads[stage], 2)) + ", and a transfer has at most " +
                       gib(limits::kTransferBytesMax) + ". When it comes down to fewer it waits for others to join");
  }
  return warnings;
}

}  // namespace shoal
