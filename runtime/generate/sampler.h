#pragma once
// The next id, drawn from the logits of a place.
// Thread: one at a time.   Borrows: nothing.
#include <cstdint>
#include <span>
#include <vector>

#include "common/rng.h"

namespace shoal {

struct SamplingOptions {
  double temperature = 0.8;  // logits are divided by it; 0: always the likeliest id
  std::uint32_t top_k = 0;   // only the k likeliest are drawn from (Fan et al. 2018); 0: all
  double top_p = 1;          // only the likeliest that together have p, at least one (Holtzman et al. 2020); 1: all
  std::uint64_t seed = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options), rng_(options.seed) {}
  // logits (V), finite, V >= 1. Equal options and logits give equal ids on every machine but for the last bit of exp.
  std::uint32_t next(std::span<const float> logits);

 private:
  SamplingOptions options_;
  Rng rng_;
  std::vector<std::uint32_t> order_;
  std::vector<double> weights_;
};

}  // namespace shoal
