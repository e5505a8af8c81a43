#include "kernels/half.h"

#include <gtest/gtest.h>

#include "kernels/half_rule.h"
#include "tests/kernels/tile_inputs.h"

namespace shoal {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(HalfTest, RoundsToTheNearestBf16AndTiesToEven) {
  EXPECT_EQ(bf16_of(1.0f), 0x3f80);
  EXPECT_EQ(bf16_of(-2.5f), 0xc020);
  EXPECT_EQ(bf16_of(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(bf16_of(std::nextafterf(1.0f + 0x1p-8f, 2.0f)), 0x3f81);
  EXPECT_EQ(bf16_of(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(bf16_of(-0.0f), 0x8000);
  EXPECT_EQ(bf16_of(FLT_TRUE_MIN), 0x0000);
  EXPECT_EQ(bf16_of(0x1p-133f), 0x0001) << "a subnormal";
}

TEST(HalfTest, RoundsToTheNearestFp16AndTiesToEven) {
  EXPECT_EQ(fp16_of(1.0f), 0x3c00);
  EXPECT_EQ(fp16_of(1.0f / 3), 0x3555);
  EXPECT_EQ(fp16_of(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(fp16_of(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(fp16_of(-0.0f), 0x8000);
  EXPECT_EQ(fp16_of(0x1p-14f), 0x0400);
  EXPECT_EQ(fp16_of(std::nextafterf(0x1p-14f, 0.0f)), 0x0400) << "up from the subnormals";
  EXPECT_EQ(fp16_of(-0x1p-24f), 0x8001);
  EXPECT_EQ(fp16_of(0x1p-25f), 0x0000) << "a tie";
  EXPECT_EQ(fp16_of(0x3p-25f), 0x0002) << "a tie";
  EXPECT_EQ(fp16_of(std::nextafterf(0x1p-25f, 1.0f)), 0x0001);
}

TEST(HalfTest, FiniteValuesBeyondTheLargestAreHeldAtIt) {
  EXPECT_EQ(bf16_of(FLT_MAX), 0x7f7f);
  EXPECT_EQ(bf16_of(-FLT_MAX), 0xff7f);
  EXPECT_EQ(fp16_of(65504.0f), 0x7bff);
  EXPECT_EQ(fp16_of(65520.0f), 0x7bff) << "IEEE's rounding would give infinity";
  EXPECT_EQ(fp16_of(-1e30f), 0xfbff);
}

TEST(HalfTest, EveryFiniteHalfSurvives) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float bf16 = float_of_bf16(half), fp16 = float_of_fp16(half);
    if (std::isfinite(bf16)) {
      ASSERT_EQ(bf16_of(bf16), half);
    }
    ASSERT_EQ(std::isfinite(fp16), (half & 0x7c00) != 0x7c00);
    if (std::isfinite(fp16)) {
      ASSERT_EQ(fp16_of(fp16), half);
    }
  }
}

// Of three neighbours none is nearer than the one that was taken.
TEST(HalfTest, NoNeighbourIsNearer) {
  const auto nearest = [](float value, std::uint32_t half, auto&& float_of) {
    const auto distance = [&](std::uint32_t at) { return std::abs(static_cast<double>(float_of(at)) - value); };
    const std::uint32_t magnitude = half & 0x7fff;
    const bool below = magnitude == 0 || distance(half) <= distance(half - 1);
    const double above = distance(half + 1);
    return below && (!std::isfinite(above) || distance(half) <= above);
  };
  std::vector<float> values = any_bits(200'000, true, 5);
  for (const float value : normal_values(100'000, 1e-6f, 6)) values.push_back(value);
  for (const float value : values) {
    ASSERT_TRUE(nearest(value, bf16_of(value), float_of_bf16)) << value;
    ASSERT_TRUE(nearest(value, fp16_of(value), float_of_fp16)) << value;
  }
}

TEST(HalfTest, FastGivesTheTwinsBitsAtEveryLength) {
  for (const HalfFormat format : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    for (std::size_t count = 0; count <= 50; ++count) {
      const std::vector<float> values = normal_values(count, 100.0f, count);
      std::vector<std::uint8_t> twin(2 * count), fast(2 * count + 1);
      EXPECT_TRUE(narrow_to_half_twin(format, values, twin));
      EXPECT_TRUE(narrow_to_half(format, values, std::span(fast).subspan(1)));  // no alignment is needed
      EXPECT_TRUE(std::equal(twin.begin(), twin.end(), fast.begin() + 1)) << count;
      std::vector<float> back(count), back_twin(count);
      EXPECT_TRUE(widen_half_twin(format, twin, back_twin));
      EXPECT_TRUE(widen_half(format, std::span(fast).subspan(1), back));
      EXPECT_EQ(back, back_twin) << count;
    }
  }
}

TEST(HalfTest, WhatIsNotFiniteIsToldBothWaysAndNeverSpreads) {
  for (const HalfFormat format : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      for (std::size_t at = 0; at < 37; ++at) {
        std::vector<float> values(37, 1.0f), back(37);
        values[at] = bad;
        std::vector<std::uint8_t> halves(2 * values.size());
        EXPECT_FALSE(narrow_to_half(format, values, halves)) << at;
        EXPECT_FALSE(widen_half(format, halves, back)) << at;
        for (std::size_t i = 0; i < back.size(); ++i) EXPECT_EQ(std::isnan(back[i]), i == at);
      }
    }
    const std::uint32_t infinity = format == HalfFormat::kBf16 ? kBf16Infinity : kFp16Infinity;
    const std::vector<std::uint8_t> halves = {static_cast<std::uint8_t>(infinity),
                                              static_cast<std::uint8_t>(infinity >> 8)};
    std::vector<float> back(1);
    EXPECT_FALSE(widen_half(format, halves, back));
  }
}

TEST(HalfDeathTest, RefusesSpansThatDoNotBelongTogether) {
  std::vector<float> values(3);
  std::vector<std::uint8_t> halves(5);
  EXPECT_DEATH((void)narrow_to_half(HalfFormat::kBf16, values, halves), "internal error.*5 and 6");
  EXPECT_DEATH((void)widen_half(HalfFormat::kFp16, halves, values), "internal error.*5 and 6");
}

}  // namespace
}  // namespace shoal
