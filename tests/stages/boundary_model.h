#pragma once
// The contract's model with a narrow boundary in front of each layer but the first.
#include "tests/stages/chain.h"

namespace shoal {

inline ModelSpec with_boundary(ModelSpec model, std::uint32_t values, std::uint32_t table) {
  model.boundary = values;
  model.boundary_table = table;
  for (std::uint32_t layer = 1; layer < model.layers; ++layer) model.cuts.push_back(layer);
  return model;
}

// Executors of the same stages with cuts, 6 values a token and tables of width 4.
inline ExecutorMaker with_boundary(ExecutorMaker maker) {
  return {maker.name + "_boundary",
          [make = maker.make](StageSpec spec) {
            spec.model = with_boundary(spec.model, 6, 4);
            return make(spec);
          },
          maker.tolerance, maker.keeps_graphs};
}

}  // namespace shoal
