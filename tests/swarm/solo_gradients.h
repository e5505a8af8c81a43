#pragma once
// The gradient of a step in one process, and how far a swarm's is from it, tensor by tensor.
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/solo/stage_chain.h"
#include "tests/swarm/recording_executor.h"

namespace shoal {

// [stage][float]: sums over the targets of `step` (from 1), at the weights that the steps before it led to.
std::vector<std::vector<float>> solo_gradients(const RunConfig& config, const ExecutorFactory& factory,
                                               std::uint64_t step);

std::vector<float> sum_of(const std::vector<StepPart>& parts);

struct TensorError {
  std::string name;
  double relative = 0;  // 2-norms: of the difference over that of the reference
};
std::vector<TensorError> tensor_errors(const RunConfig& config, StageId stage, const std::vector<float>& gradient,
                                       const std::vector<float>& reference);

}  // namespace shoal
