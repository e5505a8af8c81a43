#include "runtime/plan/stage_work.h"

#include "common/check.h"

namespace shoal {
namespace {

constexpr double kForwardAndBackward = 3;  // of a forward's FLOPs, without a forward that is made again

// How often a microbatch costs what a forward does.
double forwards_of(const RunConfig& config, const StageSpec& spec) {
  const Recompute recompute = config.compute.recompute;
  const bool again = recompute == Recompute::kBlock || (recompute == Recompute::kStage && !spec.is_last());
  return kForwardAndBackward + (again ? 1 : 0);
}

}  // namespace

std::vector<double> stage_work(const RunConfig& config) {
  if (config.executor.kind != ExecutorKind::kTorch) return std::vector<double>(config.pipeline.stages, 1);
  const auto specs = split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage);
  SHOAL_CHECK(specs.ok());
  const double targets = static_cast<double>(config.targets_per_microbatch());
  std::vector<double> work;
  for (const StageSpec& spec : *specs) work.push_back(forwards_of(config, spec) * forward_cost(spec) * targets);
  return work;
}

}  // namespace shoal
