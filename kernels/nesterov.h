#pragma once
// The outer update of DiLoCo, element by element; the rule of one element: kernels/nesterov_rule.h.
// Thread-safe: no state. Ownership: borrows all spans for the call; outputs may be the inputs themselves, else nothing
// overlaps. REQUIRES: spans of one length.
#include <cstddef>
#include <span>

namespace shoal {

struct NesterovRates {
  float lr = 0, momentum = 0;
};

struct NesterovArrays {
  std::span<const float> anchor, momentum, delta;
  std::span<float> anchor_out, momentum_out;
};

void nesterov_apply(const NesterovRates& rates, const NesterovArrays& arrays);
// The scalar twin: the specification. The one above returns the same bits.
void nesterov_apply_twin(const NesterovRates& rates, const NesterovArrays& arrays);

}  // namespace shoal
