#include "stages/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/rng.h"
#include "tests/kernels/scattered_for.h"

namespace shoal {
namespace {

const std::vector<ParameterSpec> kParameters{{"a", {30, 10}, 0, true}, {"b", {37}, 300, false}};
constexpr std::size_t kSize = 337;

std::vector<float> draw(std::uint64_t seed, double scale, std::size_t size = kSize) {
  Rng rng(seed);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(scale * rng.normal());
  return values;
}

InnerStep step_of(std::uint64_t number) {
  InnerStep step;
  step.lr = 3e-3;
  step.targets = 8;
  step.step = number;
  step.clip_norm = 0.5;
  return step;
}

TEST(AdamWTest, AgreesWithTheFormulaInDouble) {
  std::vector<float> p = draw(1, 1), m(kSize), v(kSize);
  std::vector<double> p64(p.begin(), p.end()), m64(kSize), v64(kSize);
  for (std::uint64_t number = 1; number <= 5; ++number) {
    const InnerStep step = step_of(number);
    const std::vector<float> sum = draw(10 + number, number % 2 == 0 ? 0.01 : 5.0);
    double squares = 0;
    for (const float value : sum) squares += static_cast<double>(value) * value;
    const double norm = std::sqrt(squares) / 8;
    const Result<double> got = adamw_step(kParameters, step, {p, sum, m, v, {}, p, m, v});
    ASSERT_TRUE(got.ok());
    EXPECT_NEAR(*got, norm, 1e-12 * norm);
    const double clip = norm > 0.5 ? 0.5 / norm : 1;
    for (std::size_t i = 0; i < kSize; ++i) {
      const double g = sum[i] / 8.0 * clip;
      m64[i] = 0.9 * m64[i] + 0.1 * g;
      v64[i] = 0.95 * v64[i] + 0.05 * g * g;
      const double mean = m64[i] / (1 - std::pow(0.9, number)), square = v64[i] / (1 - std::pow(0.95, number));
      p64[i] -= step.lr * (mean / (std::sqrt(square) + 1e-8) + (i < 300 ? 0.1 * p64[i] : 0));
      EXPECT_NEAR(p[i], p64[i], 2e-6) << "element " << i << " step " << number;
    }
  }
}

TEST(AdamWTest, TheResultDoesNotDependOnHowTheWorkIsCut) {
  const std::vector<float> p = draw(1, 1), sum = draw(2, 3), m = draw(3, 0.1), shift = draw(5, 0.2);
  std::vector<float> v = draw(4, 0.1);
  for (float& value : v) value *= value;
  std::vector<float> p1(kSize), m1(kSize), v1(kSize), p2(kSize), m2(kSize), v2(kSize);
  const Result<double> a = adamw_step(kParameters, step_of(3), {p, sum, m, v, shift, p1, m1, v1});
  const Result<double> b = adamw_step(kParameters, step_of(3), {p, sum, m, v, shift, p2, m2, v2}, scattered_for());
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(p1, p2);
  EXPECT_EQ(m1, m2);
  EXPECT_EQ(v1, v2);
}

TEST(AdamWTest, OtherOutputsLeaveTheInputsAlone) {
  const std::vector<float> p = draw(1, 1), sum = draw(2, 3), m = draw(3, 0.1), v(kSize, 0.01f);
  const std::vector<float> p_before = p, m_before = m, v_before = v;
  std::vector<float> p1(kSize), m1(kSize), v1(kSize);
  ASSERT_TRUE(adamw_step(kParameters, step_of(2), {p, sum, m, v, {}, p1, m1, v1}).ok());
  EXPECT_EQ(p, p_before);
  EXPECT_EQ(m, m_before);
  EXPECT_EQ(v, v_before);
  std::vector<float> in_place = p, m_place = m, v_place = v;
  ASSERT_TRUE(
      adamw_step(kParameters, step_of(2), {in_place, sum, m_place, v_place, {}, in_place, m_place, v_place}).ok());
  EXPECT_EQ(in_place, p1);
  EXPECT_EQ(v_place, v1);
}

TEST(AdamWTest, TheShiftIsAddedOnTop) {
  const std::vector<float> p = draw(1, 1), sum = draw(2, 3), shift = draw(5, 0.2), zero(kSize);
  std::vector<float> plain(kSize), shifted(kSize), m(kSize), v(kSize);
  ASSERT_TRUE(adamw_step(kParameters, step_of(1), {p, sum, zero, zero, {}, plain, m, v}).ok());
  ASSERT_TRUE(adamw_step(kParameters, step_of(1), {p, sum, zero, zero, shift, shifted, m, v}).ok());
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_EQ(shifted[i], plain[i] + shift[i]);
}

TEST(AdamWTest, ClippingScalesToTheBoundAndCanBeOff) {
  InnerStep step = step_of(1);
  step.clip_norm = 2;
  EXPECT_FLOAT_EQ(adamw_factors(step, 8).gradient_scale, 0.25f / 8);
  EXPECT_FLOAT_EQ(adamw_factors(step, 2).gradient_scale, 1.0f / 8);
  step.clip_norm = 0;
  EXPECT_FLOAT_EQ(adamw_factors(step, 1e6).gradient_scale, 1.0f / 8);
}

TEST(AdamWTest, NothingIsWrittenWhenTheSumIsNotUsable) {
  const std::vector<float> p = draw(1, 1);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f}) {
    std::vector<float> sum = draw(2, 1), m(kSize), v(kSize), out(kSize);
    sum[200] = bad;
    EXPECT_EQ(adamw_step(kParameters, step_of(1), {p, sum, m, v, {}, out, m, v}).code(), ErrorCode::kNonFinite);
    EXPECT_EQ(out, std::vector<float>(kSize));
    EXPECT_EQ(m, std::vector<float>(kSize));
  }
}

}  // namespace
}  // namespace shoal
