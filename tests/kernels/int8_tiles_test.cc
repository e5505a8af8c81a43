#include "kernels/int8_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/int8_rule.h"
#include "tests/kernels/same_bits.h"
#include "tests/kernels/tile_inputs.h"

namespace shoal {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

struct Tiles {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
};

using Quantise = void (*)(std::span<const float>, std::span<std::int8_t>, std::span<float>);

Tiles quantised(Quantise quantise, const std::vector<float>& values) {
  Tiles tiles{std::vector<std::int8_t>(values.size(), 99), std::vector<float>(int8_tile_count(values.size()), 99.0f)};
  quantise(values, tiles.codes, tiles.scales);
  return tiles;
}

std::vector<float> round_trip(const std::vector<float>& values) {
  const Tiles tiles = quantised(int8_quantise, values);
  std::vector<float> decoded(values.size());
  int8_dequantise(tiles.codes, tiles.scales, decoded);
  return decoded;
}

TEST(Int8TilesTest, CountsTilesWithAShorterLastOne) {
  EXPECT_EQ(int8_tile_count(0), 0u);
  EXPECT_EQ(int8_tile_count(1), 1u);
  EXPECT_EQ(int8_tile_count(64), 1u);
  EXPECT_EQ(int8_tile_count(65), 2u);
  EXPECT_EQ(int8_tile_count(SIZE_MAX), SIZE_MAX / 64 + 1);
}

TEST(Int8TilesTest, LargestMagnitudeBecomes127AndTiesGoToEven) {
  const std::vector<float> values = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -127.0f, 3.49f};
  const Tiles tiles = quantised(int8_quantise_twin, values);
  EXPECT_THAT(tiles.scales, ElementsAre(1.0f));
  EXPECT_THAT(tiles.codes, ElementsAre(127, 0, 2, 2, 0, -2, -2, 126, -127, 3));
}

TEST(Int8TilesTest, EachTileHasItsOwnScale) {
  std::vector<float> values(130, 0.0f);
  values[3] = 254.0f;
  values[70] = -12.7f;
  values[129] = 127.0f;
  const Tiles tiles = quantised(int8_quantise, values);
  EXPECT_THAT(tiles.scales, ElementsAre(2.0f, 12.7f / 127.0f, 1.0f));
  EXPECT_EQ(tiles.codes[3], 127);
  EXPECT_EQ(tiles.codes[70], -127);
  EXPECT_EQ(tiles.codes[129], 127);
  EXPECT_EQ(std::count(tiles.codes.begin(), tiles.codes.end(), 0), 127);
}

TEST(Int8TilesTest, AnAllZeroTileHasScaleZeroAndDecodesToZeros) {
  const std::vector<float> values(64, -0.0f);
  const Tiles tiles = quantised(int8_quantise, values);
  EXPECT_THAT(tiles.scales, ElementsAre(0.0f));
  EXPECT_THAT(tiles.codes, Each(0));
  EXPECT_THAT(round_trip(values), Each(0.0f));
}

TEST(Int8TilesTest, RuleConstantsAreWhatTheyClaim) {
  EXPECT_EQ(std::bit_cast<float>(kInt8TinyBits), 127.0f * FLT_MIN);
  EXPECT_EQ(kInt8TinyMax, 127.0f * FLT_MIN);
  EXPECT_EQ(kInt8ScaleMin, FLT_MIN);
  EXPECT_TRUE(std::isfinite(127.0f * kInt8ScaleMax));
  EXPECT_FALSE(std::isfinite(127.0f * std::nextafterf(kInt8ScaleMax, FLT_MAX)));
}

// FLT_MAX / 127 rounds up, so that 127 * scale was infinite before the scale was held below kInt8ScaleMax.
TEST(Int8TilesTest, LargestFloatsDecodeToFiniteValues) {
  const std::vector<float> decoded = round_trip({FLT_MAX, -FLT_MAX, 1.0f});
  EXPECT_FLOAT_EQ(decoded[0], FLT_MAX);
  EXPECT_FLOAT_EQ(decoded[1], -FLT_MAX);
  EXPECT_EQ(decoded[2], 0.0f);
}

// With a subnormal scale 190 * FLT_TRUE_MIN was held at 127 * FLT_TRUE_MIN: half of the codes would be wrong by a
// third.
TEST(Int8TilesTest, TilesTooSmallForANormalScaleBecomeZeros) {
  const std::vector<float> values = {190 * FLT_TRUE_MIN, -FLT_MIN, std::nextafterf(127 * FLT_MIN, 0.0f)};
  EXPECT_THAT(quantised(int8_quantise, values).scales, ElementsAre(0.0f));
  EXPECT_THAT(round_trip(values), Each(0.0f));
}

TEST(Int8TilesTest, ErrorStaysWithinHalfAScale) {
  for (const TileInput& input : finite_tile_inputs()) {
    const Tiles tiles = quantised(int8_quantise, input.values);
    const std::vector<float> decoded = round_trip(input.values);
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      const double scale = tiles.scales[i / kInt8TileElements];
      const double error = std::abs(static_cast<double>(decoded[i]) - input.values[i]);
      if (scale == 0.0) {
        ASSERT_LT(std::abs(input.values[i]), kInt8TinyMax) << input.name << " at " << i;
      } else {
        ASSERT_LE(error, 0.5001 * scale) << input.name << " at " << i << " value " << input.values[i];
      }
      ASSERT_GE(tiles.codes[i], -127) << input.name << " at " << i;
    }
  }
}

TEST(Int8TilesTest, ANonFiniteElementMarksItsTileAndNoOther) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {0, 63, 64, 100, 127, 128, 140}) {
      std::vector<float> values = normal_values(141, 1.0f, 3);
      values[at] = bad;
      const Tiles tiles = quantised(int8_quantise, values);
      for (std::size_t tile = 0; tile < tiles.scales.size(); ++tile) {
        EXPECT_EQ(std::isnan(tiles.scales[tile]), tile == at / 64) << bad << " at " << at << " tile " << tile;
      }
      const std::size_t first = at / 64 * 64;
      EXPECT_TRUE(std::all_of(tiles.codes.begin() + first, tiles.codes.begin() + std::min<std::size_t>(first + 64, 141),
                              [](int code) { return code == 0; }));
    }
  }
}

TEST(Int8TilesTest, FastQuantiseGivesTheTwinsBits) {
  for (const TileInput& input : all_tile_inputs()) {
    const Tiles twin = quantised(int8_quantise_twin, input.values);
    const Tiles fast = quantised(int8_quantise, input.values);
    EXPECT_EQ(fast.codes, twin.codes) << input.name;
    EXPECT_TRUE(same_bits(fast.scales, twin.scales)) << input.name;
  }
}

TEST(Int8TilesTest, FastDequantiseGivesTheTwinsBitsForAnyFrame) {
  Rng rng(11);
  for (const std::size_t count : {1, 63, 64, 65, 128, 1000, 64 * 40}) {
    std::vector<std::int8_t> codes(count);
    for (std::int8_t& code : codes) code = static_cast<std::int8_t>(rng.next());
    const std::vector<float> scales = any_bits(int8_tile_count(count), true, count);
    std::vector<float> twin(count), fast(count);
    int8_dequantise_twin(codes, scales, twin);
    int8_dequantise(codes, scales, fast);
    EXPECT_TRUE(same_bits(fast, twin)) << count;
  }
}

TEST(Int8TilesTest, FastVariantsNeedNoAlignment) {
  const std::vector<float> values = normal_values(64 * 3 + 8, 1.0f, 8);
  const std::span<const float> odd = std::span(values).subspan(1, 64 * 3 + 5);
  const Tiles twin = quantised(int8_quantise_twin, {odd.begin(), odd.end()});
  std::vector<std::int8_t> codes(odd.size() + 3);
  std::vector<float> scales(twin.scales.size());
  int8_quantise(odd, std::span(codes).subspan(3), scales);
  EXPECT_TRUE(std::equal(twin.codes.begin(), twin.codes.end(), codes.begin() + 3));
  std::vector<float> decoded(odd.size() + 1), expected(odd.size());
  int8_dequantise(std::span(codes).subspan(3), scales, std::span(decoded).subspan(1));
  int8_dequantise_twin(twin.codes, twin.scales, expected);
  EXPECT_TRUE(same_bits({decoded.begin() + 1, decoded.end()}, expected));
}

TEST(Int8TilesTest, QuantisingTwiceChangesNothingMore) {
  const std::vector<float> once = round_trip(normal_values(64 * 20, 1.0f, 9));
  EXPECT_TRUE(same_bits(round_trip(once), once));
}

TEST(Int8TilesDeathTest, RefusesSpansThatDoNotBelongTogether) {
  std::vector<float> values(65), scales(1);
  std::vector<std::int8_t> codes(65);
  EXPECT_DEATH(int8_quantise(values, codes, scales), "internal error.*1 and 2");
  EXPECT_DEATH(int8_dequantise(std::span(codes).first(64), scales, values), "internal error.*65 and 64");
}

TEST(Int8TilesTest, NamesTheInstructionSetItRunsOn) {
#if SHOAL_WITH_NET
  EXPECT_FALSE(fast_cpu_target().empty());
  EXPECT_NE(fast_cpu_target(), "scalar");
#else
  EXPECT_EQ(fast_cpu_target(), "scalar");
#endif
}

}  // namespace
}  // namespace shoal
