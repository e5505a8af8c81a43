#pragma once
// The arithmetic of accumulation on one element, shared by the scalar twin, the CUDA kernel and what the vectors of the
// Highway variant leave over. With sign = +1 or -1 the product is exact: one rounding, to the nearest, ties to even,
// fused or not.
#include "kernels/accumulate.h"
#include "kernels/half_rule.h"

namespace shoal {

SHOAL_HOST_DEVICE inline bool is_finite(float value) { return (bits_of_float(value) & kAbsMask) < kInfinityBits; }

SHOAL_HOST_DEVICE inline float accumulated(float sum, float gradient, float sign) { return sum + sign * gradient; }

}  // namespace shoal
