#pragma once
// A run of four stages behind a narrow boundary, as far as the boundary was measured.
#include "runtime/config/derived_options.h"

namespace shoal {

inline RunConfig narrow_run(std::uint32_t boundary, std::uint32_t dim = 128) {
  RunConfig config = default_config();
  config.model.layers = 8;
  config.model.dim = dim;
  config.model.heads = 4;
  config.model.positions = 128;
  config.model.boundary = boundary;
  config.pipeline.stages = 4;
  config.data.sequences = 2;
  config.wire.forward.codecs = config.wire.backward.codecs = {CodecId::kInt8};
  config.end.tokens = 2'500'000;
  derive_options(config);
  return config;
}

}  // namespace shoal
