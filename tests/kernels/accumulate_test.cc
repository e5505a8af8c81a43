#include "kernels/accumulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/same_bits.h"
#include "tests/kernels/tile_inputs.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(AccumulateTest, AddsWithTheSign) {
  std::vector<float> sum = {1.0f, 2.0f, 3.0f};
  const std::vector<float> gradient = {0.5f, -2.0f, 4.0f};
  ASSERT_TRUE(accumulate_checked(sum, gradient, 1.0f).ok());
  EXPECT_THAT(sum, ElementsAre(1.5f, 0.0f, 7.0f));
  ASSERT_TRUE(accumulate_checked(sum, gradient, -1.0f).ok());
  EXPECT_THAT(sum, ElementsAre(1.0f, 2.0f, 3.0f));
}

TEST(AccumulateTest, NothingIsAddedWhenOneElementIsNotFinite) {
  for (const float bad : {kNaN, -kNaN, kInfinity, -kInfinity}) {
    for (const std::size_t count : {1, 7, 16, 33, 4096, 4097, 10000}) {
      for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
        std::vector<float> sum = normal_values(count, 1.0f, 1);
        const std::vector<float> before = sum;
        std::vector<float> gradient = normal_values(count, 1.0f, 2);
        gradient[at] = bad;
        const Status status = accumulate_checked(sum, gradient, 1.0f);
        ASSERT_FALSE(status.ok()) << bad << " at " << at << " of " << count;
        EXPECT_EQ(status.code(), ErrorCode::kNonFinite);
        EXPECT_TRUE(same_bits(sum, before)) << bad << " at " << at << " of " << count;
      }
    }
  }
}

TEST(AccumulateTest, TheErrorSaysHowManyAndWhereTheFirstIs) {
  std::vector<float> sum(100, 0.0f);
  std::vector<float> gradient(100, 1.0f);
  gradient[41] = kInfinity;
  gradient[90] = kNaN;
  const Status status = accumulate_checked(sum, gradient, -1.0f);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("2 of 100 gradient elements"));
  EXPECT_THAT(status.error().message, HasSubstr("first at index 41 (inf)"));
}

TEST(AccumulateTest, FastGivesTheTwinsBits) {
  for (const float sign : {1.0f, -1.0f}) {
    for (const std::size_t count : {0, 1, 3, 8, 15, 16, 17, 31, 64, 1000, 4099}) {
      std::vector<float> twin = any_bits(count, true, 3 * count);
      std::vector<float> fast = twin;
      const std::vector<float> gradient = any_bits(count, true, 3 * count + 1);
      accumulate_twin(twin, gradient, sign);
      ASSERT_TRUE(accumulate_checked(fast, gradient, sign).ok());
      EXPECT_TRUE(same_bits(fast, twin)) << count << " sign " << sign;
    }
  }
}

TEST(AccumulateTest, SignedZerosFollowTheTwin) {
  const std::vector<float> start = {0.0f, -0.0f, 0.0f, -0.0f, 1.0f};
  const std::vector<float> gradient = {0.0f, 0.0f, -0.0f, -0.0f, 1.0f};
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> twin = start, fast = start;
    accumulate_twin(twin, gradient, sign);
    ASSERT_TRUE(accumulate_checked(fast, gradient, sign).ok());
    EXPECT_TRUE(same_bits(fast, twin)) << sign;
  }
}

TEST(AccumulateTest, ScreenAgreesWithTheTwinOnEveryPositionAndLength) {
  for (std::size_t count = 0; count <= 70; ++count) {
    std::vector<float> values(count, FLT_MAX);
    EXPECT_TRUE(all_finite(values)) << count;
    EXPECT_EQ(first_non_finite(values), std::nullopt) << count;
    for (std::size_t at = 0; at < count; ++at) {
      values[at] = at % 2 == 0 ? kNaN : -kInfinity;
      EXPECT_FALSE(all_finite(values)) << at << " of " << count;
      EXPECT_FALSE(all_finite_twin(values));
      EXPECT_EQ(first_non_finite(values), at);
      values[at] = -FLT_TRUE_MIN;
    }
  }
}

TEST(AccumulateDeathTest, RefusesAnotherSignAndOtherSizes) {
  std::vector<float> sum(3), gradient(3);
  EXPECT_DEATH((void)accumulate_checked(sum, gradient, 0.5f), "internal error.*0.5 and 1");
  EXPECT_DEATH((void)accumulate_checked(std::span(sum).first(2), gradient, 1.0f), "internal error.*2 and 3");
}

}  // namespace
}  // namespace shoal
