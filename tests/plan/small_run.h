#pragma once
// A run of two small stages, for tests of what memory holds.
#include "runtime/config/config.h"
#include "stages/stage_spec.h"

namespace shoal {

inline RunConfig small_run() {
  RunConfig config;
  config.model = {{.layers = 4, .dim = 64, .heads = 4, .positions = 64, .vocabulary = 256}, {}, {}};
  config.data.sequences = 8;
  config.pipeline.stages = 2;
  return config;
}

inline StageSpec last_stage(const RunConfig& config) { return split_model(config.model_spec(), 2, {}).value().back(); }

}  // namespace shoal
