#include "kernels/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/rng.h"
#include "tests/kernels/scattered_for.h"

namespace shoal {
namespace {

TEST(NormTest, SumsInDoubleOverBlocksOfAnySize) {
  Rng rng(1);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{9}, kNormBlock, kNormBlock + 3, 3 * kNormBlock}) {
    std::vector<float> values(size);
    for (float& value : values) value = static_cast<float>(2 * rng.normal());
    long double expected = 0;
    for (const float value : values) expected += static_cast<long double>(value) * value;
    EXPECT_NEAR(sum_of_squares(values), static_cast<double>(expected), 1e-12 * static_cast<double>(expected));
    EXPECT_EQ(sum_of_squares(values), sum_of_squares(values, scattered_for()));
  }
  EXPECT_DOUBLE_EQ(norm_of(std::vector<float>{3e30f, 4e30f}), std::hypot(double{3e30f}, double{4e30f}))
      << "no overflow in between";
}

TEST(NormTest, ARootMeanSquareIsFiniteExactlyWhereAllValuesAre) {
  EXPECT_EQ(root_mean_square({}), 0);
  EXPECT_DOUBLE_EQ(root_mean_square(std::vector<float>{3, -3, 3}), 3);
  std::vector<float> values(1000, -3e38f);
  EXPECT_NEAR(root_mean_square(values) / 3e38, 1, 1e-6);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    values[999] = bad;
    EXPECT_FALSE(std::isfinite(root_mean_square(values)));
  }
}

}  // namespace
}  // namespace shoal
