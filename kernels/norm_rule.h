#pragma once
// How squares and products are summed, shared by the CPU's loop and the CUDA kernel: in double, where the product of
// two floats is exact. Blocks of kNormBlock elements; within one, element i goes to lane i % kNormLanes, each lane adds
// its own in ascending order, and the lanes' sums are added from the first to the last, beginning with 0. So are the
// blocks'.
#include "kernels/int8_rule.h"
#include "kernels/norm.h"

namespace shoal {

inline constexpr std::size_t kNormLanes = 8;

SHOAL_HOST_DEVICE inline double norm_added(double sum, float a, float b) {
  return sum + static_cast<double>(a) * static_cast<double>(b);
}

}  // namespace shoal
