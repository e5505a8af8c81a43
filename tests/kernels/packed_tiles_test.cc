#include "kernels/packed_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/packed_rule.h"
#include "tests/kernels/tile_inputs.h"

namespace shoal {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr TileFormat kFormats[] = {TileFormat::kInt4, TileFormat::kInt4Hadamard, TileFormat::kInt2};

struct Packed {
  std::vector<std::uint8_t> scales, codes;
  std::uint32_t scale(std::size_t tile) const { return scales[2 * tile] | std::uint32_t{scales[2 * tile + 1]} << 8; }
};

Packed packed(TileFormat format, const std::vector<float>& values, TileSeed seed = {}) {
  const std::size_t tiles = packed_tile_count(values.size());
  Packed out{std::vector<std::uint8_t>(2 * tiles, 99),
             std::vector<std::uint8_t>(packed_tile_bytes(format) * tiles, 99)};
  pack_tiles(format, seed, values, out.scales, out.codes);
  return out;
}

std::vector<float> unpacked(TileFormat format, const Packed& tiles, std::size_t count, TileSeed seed = {}) {
  std::vector<float> values(count);
  unpack_tiles(format, seed, tiles.scales, tiles.codes, values);
  return values;
}

std::vector<float> round_trip(TileFormat format, const std::vector<float>& values, TileSeed seed = {}) {
  return unpacked(format, packed(format, values, seed), values.size(), seed);
}

TEST(PackedTilesTest, GoldenBytesOfInt4) {
  std::vector<float> values(32, 0.0f);
  const float front[] = {7.0f, -7.0f, 0.5f, 1.5f, -1.5f, 3.49f, -0.0f};  // ties go to the even code
  std::copy(std::begin(front), std::end(front), values.begin());
  values[16] = -1.0f;
  values[31] = 6.0f;
  const Packed tiles = packed(TileFormat::kInt4, values);
  EXPECT_THAT(tiles.scales, ElementsAre(0x80, 0x3f));  // 1.0
  EXPECT_THAT(tiles.codes, ElementsAre(0xf7, 0x09, 0x00, 0x02, 0x0e, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x60));
}

TEST(PackedTilesTest, GoldenBytesOfInt2) {
  std::vector<float> values(32, 1.0f);
  values[0] = 3.0f;
  values[1] = -3.0f;
  values[9] = -1.0f;
  values[18] = 2.9f;
  values[31] = -0.5f;
  const Packed tiles = packed(TileFormat::kInt2, values);
  EXPECT_THAT(tiles.scales, ElementsAre(0x80, 0x3f));  // 1.0
  EXPECT_THAT(tiles.codes, ElementsAre(0x01, 0x0b, 0x10, 0, 0, 0, 0, 0x80));
}

// What chance draws is part of the format: another build has to draw the same.
TEST(PackedTilesTest, GoldenBytesOfInt4Hadamard) {
  std::vector<float> values(40);
  std::iota(values.begin(), values.end(), -20.0f);
  const Packed tiles = packed(TileFormat::kInt4Hadamard, values, {0x0123456789abcdefull, 0});
  EXPECT_THAT(tiles.scales, ElementsAre(0x15, 0x3f, 0xa5, 0x3e));
  const std::uint8_t codes[] = {0x13, 0xd0, 0xdf, 0x55, 0x13, 0x4e, 0xdf, 0xd0, 0x23, 0x75, 0xef,
                                0x65, 0x21, 0x05, 0xed, 0x0e, 0x00, 0x00, 0xbb, 0x9a, 0x00, 0x00,
                                0xab, 0x77, 0x11, 0x01, 0xbb, 0xa9, 0x11, 0x0f, 0xbb, 0x77};
  EXPECT_THAT(tiles.codes, ElementsAreArray(codes));
}

TEST(PackedTilesTest, Int4StaysWithinHalfAScale) {
  for (const TileInput& input : finite_tile_inputs()) {
    const Packed tiles = packed(TileFormat::kInt4, input.values);
    const std::vector<float> decoded = unpacked(TileFormat::kInt4, tiles, input.values.size());
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      const std::uint32_t bits = tiles.scale(i / 32);
      const double scale = float_of_bf16(bits), value = input.values[i];
      if (bits == 0) {
        ASSERT_LT(std::abs(value), 7 * 0x1p-126) << input.name << " at " << i;
      } else if (bits < packed_range(TileFormat::kInt4).scale_max) {
        ASSERT_LE(std::abs(decoded[i] - value), 0.5001 * scale) << input.name << " at " << i;
      } else {
        ASSERT_TRUE(std::isfinite(decoded[i])) << input.name << " at " << i;
      }
    }
  }
}

// The best of four scales, by brute force over what each would decode to.
TEST(PackedTilesTest, Int2TakesTheScaleOfTheLeastError) {
  const auto error_of = [](const std::vector<float>& values, double scale) {
    double sum = 0;
    for (const float value : values) {
      const double magnitude = std::abs(value);
      const double level = magnitude > 2 * scale ? 3 * scale : scale;
      sum += (magnitude - level) * (magnitude - level);
    }
    return sum;
  };
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<float> values = normal_values(32, 1.0f, seed);
    if (seed % 3 == 0) values[7] = 6.0f;
    float absmax = 0;
    for (const float value : values) absmax = std::max(absmax, std::abs(value));
    double least = INFINITY;
    for (const double divisor : {3.0, 3.75, 5.0, 7.5}) least = std::min(least, error_of(values, absmax / divisor));
    const std::vector<float> decoded = round_trip(TileFormat::kInt2, values);
    double error = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      error += std::pow(static_cast<double>(decoded[i]) - values[i], 2);
      ASSERT_LE(std::abs(decoded[i] - values[i]), 0.61 * absmax) << seed;
      ASSERT_EQ(std::signbit(decoded[i]), std::signbit(values[i])) << seed;
    }
    ASSERT_LE(error, 1.05 * least) << seed;  // bf16 and 240ths round the scale and the thresholds
  }
}

TEST(PackedTilesTest, Int4HadamardIsRightOnAverage) {
  const std::vector<float> values = normal_values(64, 1.0f, 3);
  std::vector<double> sum(64);
  constexpr int kRounds = 4000;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const std::vector<float> decoded = round_trip(TileFormat::kInt4Hadamard, values, {seed, 0});
    for (std::size_t i = 0; i < 64; ++i) sum[i] += decoded[i];
  }
  // A single error is about 0.15; five standard errors of the mean.
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(sum[i] / kRounds, values[i], 5 * 0.15 / std::sqrt(kRounds)) << i;
}

// Each rotated value moves by less than a scale, and the rotation keeps lengths (times the root of 32).
TEST(PackedTilesTest, Int4HadamardErrorIsBounded) {
  for (const TileInput& input : finite_tile_inputs()) {
    const Packed tiles = packed(TileFormat::kInt4Hadamard, input.values, {9, 0});
    const std::vector<float> decoded = unpacked(TileFormat::kInt4Hadamard, tiles, input.values.size(), {9, 0});
    for (std::size_t tile = 0; tile < tiles.scales.size() / 2; ++tile) {
      double error = 0;
      for (std::size_t i = 32 * tile; i < std::min(decoded.size(), 32 * tile + 32); ++i) {
        ASSERT_TRUE(std::isfinite(decoded[i])) << input.name << " at " << i;
        error += std::pow(static_cast<double>(decoded[i]) - input.values[i], 2);
      }
      const std::uint32_t bits = tiles.scale(tile);
      if (bits == packed_range(TileFormat::kInt4Hadamard).scale_max) continue;
      const double scale = bits == 0 ? 7 * 0x1p-110 : float_of_bf16(bits);
      ASSERT_LE(std::sqrt(error), 1.0001 * 32 * scale) << input.name << " tile " << tile;
    }
  }
}

TEST(PackedTilesTest, OnlyTheRotatedFormatLooksAtTheSeed) {
  const std::vector<float> values = normal_values(320, 1.0f, 1);
  for (const TileFormat format : kFormats) {
    const Packed one = packed(format, values, {1, 0}), again = packed(format, values, {1, 0});
    EXPECT_EQ(one.codes, again.codes);
    EXPECT_EQ(packed(format, values, {2, 0}).codes == one.codes, format != TileFormat::kInt4Hadamard);
  }
}

TEST(PackedTilesTest, PiecesGiveTheBytesOfTheWhole) {
  const std::vector<float> values = normal_values(32 * 7 + 5, 1.0f, 2);
  for (const TileFormat format : kFormats) {
    const Packed whole = packed(format, values, {77, 0});
    const Packed rest = packed(format, {values.begin() + 96, values.end()}, {77, 3});
    EXPECT_TRUE(std::equal(rest.codes.begin(), rest.codes.end(), whole.codes.end() - std::ssize(rest.codes)));
    EXPECT_TRUE(std::equal(rest.scales.begin(), rest.scales.end(), whole.scales.end() - std::ssize(rest.scales)));
  }
}

TEST(PackedTilesTest, FastGivesTheTwinsBitsAtEveryLength) {
  for (const TileFormat format : kFormats) {
    for (const std::size_t count : {0, 1, 31, 32, 33, 63, 64, 65, 95, 1000}) {
      const std::vector<float> values = normal_values(count, 3.0f, count);
      Packed twin = packed(format, values);  // for its sizes
      pack_tiles_twin(format, {5, 6}, values, twin.scales, twin.codes);
      const Packed fast = packed(format, values, {5, 6});
      EXPECT_EQ(fast.codes, twin.codes) << count;
      EXPECT_EQ(fast.scales, twin.scales) << count;
      std::vector<float> decoded(count);
      unpack_tiles_twin(format, {5, 6}, twin.scales, twin.codes, decoded);
      EXPECT_EQ(unpacked(format, fast, count, {5, 6}), decoded) << count;
    }
  }
}

TEST(PackedTilesTest, ANonFiniteElementMarksItsTileAndNoOther) {
  for (const TileFormat format : kFormats) {
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      for (const std::size_t at : {0, 31, 32, 64, 70}) {
        std::vector<float> values = normal_values(71, 1.0f, 3);
        values[at] = bad;
        const Packed tiles = packed(format, values, {1, 0});
        for (std::size_t tile = 0; tile < 3; ++tile)
          EXPECT_EQ(tiles.scale(tile) == kHalfNaN, tile == at / 32) << bad << " at " << at << " tile " << tile;
      }
    }
  }
}

TEST(PackedTilesTest, ZerosAndWhatIsTooSmallForAScaleBecomeZeros) {
  for (const TileFormat format : kFormats) {
    EXPECT_THAT(round_trip(format, {0.0f, -0.0f, 0.0f}), Each(0.0f));
    EXPECT_THAT(round_trip(format, {FLT_TRUE_MIN, -FLT_MIN, 3 * FLT_MIN}), Each(0.0f));
    EXPECT_EQ(packed(format, {FLT_MIN}).scale(0), 0u);
  }
}

TEST(PackedTilesTest, AnyCodesOfAScaleInRangeDecodeToFiniteValues) {
  Rng rng(8);
  for (const TileFormat format : kFormats) {
    const PackedRange range = packed_range(format);
    for (const std::uint32_t scale : {range.scale_min, range.scale_max, 0u}) {
      Packed tiles = packed(format, std::vector<float>(32 * 50, 1.0f));
      for (std::size_t tile = 0; tile < 50; ++tile) {
        tiles.scales[2 * tile] = static_cast<std::uint8_t>(scale);
        tiles.scales[2 * tile + 1] = static_cast<std::uint8_t>(scale >> 8);
      }
      for (std::uint8_t& code : tiles.codes) code = static_cast<std::uint8_t>(rng.chance(0.5) ? 0x88 : rng.next());
      for (const float value : unpacked(format, tiles, 32 * 50, {3, 0})) ASSERT_TRUE(std::isfinite(value)) << scale;
    }
  }
}

TEST(PackedTilesTest, RangesAreWhatTheyClaim) {
  for (const TileFormat format : kFormats) {
    const PackedRange range = packed_range(format);
    const float most = float_of_bf16(range.scale_max);
    const float levels = format == TileFormat::kInt4 ? 8.0f : format == TileFormat::kInt2 ? 3.0f : 256.0f;
    EXPECT_TRUE(std::isfinite(levels * most));
    EXPECT_FALSE(std::isfinite(levels * float_of_bf16(range.scale_max + 1)));
    // The smallest tile that is coded gets the smallest scale; int2 may divide by 7.5.
    const float tiny = float_of_bits(range.tiny);
    EXPECT_GE(tiny / (format == TileFormat::kInt2 ? 7.5f : 7.0f), float_of_bf16(range.scale_min));
    EXPECT_GE(float_of_bf16(range.scale_min), FLT_MIN);
  }
}

TEST(PackedTilesTest, QuantisingTwiceChangesNothingMore) {
  for (const TileFormat format : {TileFormat::kInt4, TileFormat::kInt2}) {
    for (const TileInput& input : finite_tile_inputs()) {
      const std::vector<float> once = round_trip(format, input.values);
      const Packed first = packed(format, once), second = packed(format, round_trip(format, once));
      EXPECT_EQ(first.codes, second.codes) << input.name;
      EXPECT_EQ(first.scales, second.scales) << input.name;
    }
  }
}

TEST(PackedTilesDeathTest, RefusesSpansThatDoNotBelongTogether) {
  std::vector<float> values(33);
  std::vector<std::uint8_t> scales(4), codes(32);
  EXPECT_DEATH(pack_tiles(TileFormat::kInt2, {}, values, scales, codes), "internal error.*32 and 16");
  EXPECT_DEATH(unpack_tiles(TileFormat::kInt4, {}, std::span(scales).first(2), codes, values),
               "internal error.*2 and 4");
}

}  // namespace
}  // namespace shoal
