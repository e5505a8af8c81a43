#pragma once
// Norms of float arrays. The result does not depend on how the work is cut among threads.
// Thread-safe: no state.   Ownership: borrows everything for the call.
#include <cstddef>
#include <span>

#include "kernels/parallel_for.h"

namespace shoal {

// Sum of squares in double, in the order of kernels/norm_rule.h.
inline constexpr std::size_t kNormBlock = 8192;
double sum_of_squares(std::span<const float> values, const ParallelFor& parallel = serial_for());
double norm_of(std::span<const float> values, const ParallelFor& parallel = serial_for());
// Sum of products in double, in the same order. REQUIRES: of one length.
double dot_product(std::span<const float> a, std::span<const float> b);
// 0 of none. Finite exactly when all values are.
double root_mean_square(std::span<const float> values);

}  // namespace shoal
