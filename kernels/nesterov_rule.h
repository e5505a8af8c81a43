#pragma once
// The arithmetic of the outer update on one element, shared by the scalar twin and the CUDA kernel; the Highway variant
// does the same operations in the same order. Each operator is one operation in fp32, rounded to the nearest, ties to
// even, subnormals kept; none is fused with another (kernels/adamw_rule.h says by which means).
//   m = momentum * m' + delta
//   a = a' - lr * (delta + momentum * m)
// Nesterov as Sutskever et al. 2013, in the form of torch's SGD; Douillard et al. 2023 (DiLoCo), algorithm 1.
#include "kernels/int8_rule.h"
#include "kernels/nesterov.h"

namespace shoal {

struct NesterovElement {
  float anchor, momentum;
};

SHOAL_HOST_DEVICE inline NesterovElement nesterov_element(const NesterovRates& rates, const NesterovElement& before,
                                                          float delta) {
  const float momentum = rates.momentum * before.momentum + delta;
  const float step = delta + rates.momentum * momentum;
  return {before.anchor - rates.lr * step, momentum};
}

}  // namespace shoal
