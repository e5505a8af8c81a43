#include "compression/distortion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace shoal {
namespace {

TEST(DistortionTest, NoErrorIsInfiniteSnr) {
  const std::vector<float> values = {1.0f, -2.0f, 0.0f};
  Distortion distortion;
  distortion.add(values, values);
  EXPECT_TRUE(std::isinf(distortion.snr_db()));
  EXPECT_EQ(distortion.max_error(), 0.0);
  EXPECT_EQ(distortion.bias(), 0.0);
  EXPECT_EQ(distortion.count(), 3u);
}

TEST(DistortionTest, FiguresOfAKnownError) {
  const std::vector<float> original = {3.0f, -4.0f, 1.0f, 0.0f};
  const std::vector<float> decoded = {3.5f, -4.0f, 0.0f, 0.5f};
  Distortion distortion;
  distortion.add(original, decoded);
  EXPECT_DOUBLE_EQ(distortion.snr_db(), 10 * std::log10(26.0 / 1.5));
  EXPECT_DOUBLE_EQ(distortion.rms_error(), std::sqrt(1.5 / 4));
  EXPECT_DOUBLE_EQ(distortion.max_error(), 1.0);
  EXPECT_DOUBLE_EQ(distortion.bias(), 0.0);
  EXPECT_EQ(distortion.rounded_to_zero(), 1u);
  EXPECT_EQ(distortion.sign_flips(), 0u);
}

TEST(DistortionTest, ShowsABiasAndAFlippedSign) {
  const std::vector<float> original = {1.0f, -0.1f};
  const std::vector<float> decoded = {1.2f, 0.1f};
  Distortion distortion;
  distortion.add(original, decoded);
  EXPECT_NEAR(distortion.bias(), 0.2, 1e-6);
  EXPECT_EQ(distortion.sign_flips(), 1u);
}

TEST(DistortionTest, PiecesAddUpToTheWhole) {
  const std::vector<float> original = {1.0f, 2.0f, 3.0f, 4.0f};
  const std::vector<float> decoded = {1.1f, 1.9f, 3.3f, 4.0f};
  Distortion whole, pieces;
  whole.add(original, decoded);
  pieces.add(std::span(original).first(1), std::span(decoded).first(1));
  pieces.add(std::span(original).subspan(1), std::span(decoded).subspan(1));
  EXPECT_EQ(pieces.text(), whole.text());
}

TEST(DistortionTest, NothingSeenIsNoDivisionByZero) {
  const Distortion distortion;
  EXPECT_EQ(distortion.bias(), 0.0);
  EXPECT_EQ(distortion.rms_error(), 0.0);
}

}  // namespace
}  // namespace shoal
