#include "runtime/config/microbatch_size.h"

#include <algorithm>
#include <cmath>

#include "runtime/config/derived_options.h"

namespace shoal {
namespace {

constexpr double kFillsAStep = 4;

// A Step is to fit into a message, and a round into the window of ids (check_config).
double step_microbatches_most(const RunConfig& c) {
  const auto stages = std::max<std::uint16_t>(1, c.pipeline.stages);
  if (c.global_step(0))
    return static_cast<double>(std::min(RunConfig::kStepMicrobatchesMax, RunConfig::paths_in_message(stages)));
  return static_cast<double>(RunConfig::kRoundMicrobatchesMax) /
         static_cast<double>(std::max<std::uint64_t>(1, c.sync.inner_steps));
}

}  // namespace

std::uint32_t sequences_of_microbatch(const RunConfig& c, double batch) {
  const bool given = c.global_step(0) && c.sync.microbatches_per_step != kAuto<std::uint64_t>;
  if (c.executor.kind != ExecutorKind::kTorch || given) return kSequencesUsual;
  const double positions = std::max<std::uint32_t>(1, c.model.positions);
  const double fill =
      2.0 * std::max<std::uint16_t>(1, c.pipeline.stages) * std::max<std::uint16_t>(1, c.pipeline.replicas);
  const double least = std::ceil(kTargetsLeast / positions), most = std::max<double>(kSequencesUsual, least);
  const double sequences = batch / positions;
  const double filling = std::floor(sequences / fill);  // with so many, a step has what fills the pipe
  const double wanted = std::clamp(std::floor(sequences / fill / kFillsAStep), least, most);
  return static_cast<std::uint32_t>(
      std::clamp(std::max(std::min(filling, wanted), std::ceil(sequences / step_microbatches_most(c))), 1.0, most));
}

}  // namespace shoal
