#include "kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/check.h"
#include "kernels/norm_rule.h"

namespace shoal {
namespace {

double block_sum(const float* a, const float* b, std::size_t count) {
  double lanes[kNormLanes] = {};
  const std::size_t whole = count - count % kNormLanes;
  for (std::size_t i = 0; i < whole; i += kNormLanes) {
    for (std::size_t lane = 0; lane < kNormLanes; ++lane)
      lanes[lane] = norm_added(lanes[lane], a[i + lane], b[i + lane]);
  }
  for (std::size_t i = whole; i < count; ++i) lanes[i - whole] = norm_added(lanes[i - whole], a[i], b[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double sum_of_squares(std::span<const float> values, const ParallelFor& parallel) {
  const std::size_t blocks = (values.size() + kNormBlock - 1) / kNormBlock;
  std::vector<double> sums(blocks);
  parallel(blocks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t block = begin; block < end; ++block) {
      const std::size_t offset = block * kNormBlock;
      sums[block] =
          block_sum(values.data() + offset, values.data() + offset, std::min(kNormBlock, values.size() - offset));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

double norm_of(std::span<const float> values, const ParallelFor& parallel) {
  return std::sqrt(sum_of_squares(values, parallel));
}

double dot_product(std::span<const float> a, std::span<const float> b) {
  SHOAL_CHECK_EQ(a.size(), b.size());
  double total = 0;
  for (std::size_t at = 0; at < a.size(); at += kNormBlock)
    total += block_sum(a.data() + at, b.data() + at, std::min(kNormBlock, a.size() - at));
  return total;
}

double root_mean_square(std::span<const float> values) {
  return values.empty() ? 0 : norm_of(values) / std::sqrt(static_cast<double>(values.size()));
}

}  // namespace shoal
