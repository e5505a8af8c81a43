// The fast variants exist once per instruction set; each that this machine can run is held against the twins.
#include "tests/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include "kernels/accumulate.h"
#include "kernels/half.h"
#include "kernels/int8_tiles.h"
#include "kernels/nesterov.h"
#include "kernels/packed_tiles.h"
#include "tests/kernels/adamw_arrays.h"
#include "tests/kernels/same_bits.h"
#include "tests/kernels/tile_inputs.h"

namespace shoal {
namespace {

class InstructionSetsTest : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    compute_with(GetParam());
    ASSERT_EQ(fast_cpu_target(), hwy::TargetName(GetParam()));
  }
  void TearDown() override { compute_with(0); }
};

INSTANTIATE_TEST_SUITE_P(Here, InstructionSetsTest, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

TEST_P(InstructionSetsTest, Int8TilesGiveTheTwinsBits) {
  for (const TileInput& input : all_tile_inputs()) {
    const std::size_t count = input.values.size();
    std::vector<std::int8_t> twin_codes(count), codes(count);
    std::vector<float> twin_scales(int8_tile_count(count)), scales(twin_scales.size()), twin_decoded(count),
        decoded(count);
    int8_quantise_twin(input.values, twin_codes, twin_scales);
    int8_quantise(input.values, codes, scales);
    EXPECT_TRUE(same_bits(codes, twin_codes)) << input.name;
    EXPECT_TRUE(same_bits(scales, twin_scales)) << input.name;
    int8_dequantise_twin(codes, scales, twin_decoded);
    int8_dequantise(codes, scales, decoded);
    expect_same_floats(decoded, twin_decoded, input.name);
  }
}

TEST_P(InstructionSetsTest, HalvesGiveTheTwinsBits) {
  std::vector<std::uint8_t> all(2 << 16);
  for (std::size_t half = 0; half < all.size() / 2; ++half) {
    all[2 * half] = static_cast<std::uint8_t>(half);
    all[2 * half + 1] = static_cast<std::uint8_t>(half >> 8);
  }
  for (const HalfFormat format : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    for (const TileInput& input : all_tile_inputs()) {
      std::vector<std::uint8_t> twin(2 * input.values.size()), fast(twin.size());
      const bool finite = narrow_to_half_twin(format, input.values, twin);
      EXPECT_EQ(narrow_to_half(format, input.values, fast), finite) << input.name;
      EXPECT_EQ(fast, twin) << input.name;
    }
    std::vector<float> twin(all.size() / 2), fast(twin.size());
    EXPECT_FALSE(widen_half_twin(format, all, twin));
    EXPECT_FALSE(widen_half(format, all, fast));
    EXPECT_TRUE(same_bits(fast, twin));
  }
}

TEST_P(InstructionSetsTest, PackedTilesGiveTheTwinsBits) {
  Rng rng(4);
  for (const TileFormat format : {TileFormat::kInt4, TileFormat::kInt4Hadamard, TileFormat::kInt2}) {
    for (const TileInput& input : all_tile_inputs()) {
      const TileSeed seed{rng.next(), rng.below(1000)};
      const std::size_t count = input.values.size(), tiles = packed_tile_count(count);
      std::vector<std::uint8_t> twin_scales(2 * tiles), scales(2 * tiles);
      std::vector<std::uint8_t> twin_codes(packed_tile_bytes(format) * tiles), codes(twin_codes.size());
      pack_tiles_twin(format, seed, input.values, twin_scales, twin_codes);
      pack_tiles(format, seed, input.values, scales, codes);
      EXPECT_EQ(codes, twin_codes) << input.name << ", format " << static_cast<int>(format);
      EXPECT_EQ(scales, twin_scales) << input.name << ", format " << static_cast<int>(format);
      for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(rng.next());  // any that may be sent
      std::vector<float> twin(count), fast(count);
      for (std::size_t tile = 0; tile < tiles; ++tile) twin_scales[2 * tile + 1] &= 0x7b;
      unpack_tiles_twin(format, seed, twin_scales, codes, twin);
      unpack_tiles(format, seed, twin_scales, codes, fast);
      EXPECT_TRUE(same_bits(fast, twin)) << input.name << ", format " << static_cast<int>(format);
    }
  }
}

TEST_P(InstructionSetsTest, AccumulationGivesTheTwinsBits) {
  for (const std::size_t count : {1, 4, 5, 16, 31, 33, 64, 4097}) {
    for (const float sign : {1.0f, -1.0f}) {
      std::vector<float> twin = any_bits(count, true, count);
      std::vector<float> fast = twin;
      const std::vector<float> gradient = any_bits(count, true, count + 1);
      accumulate_twin(twin, gradient, sign);
      ASSERT_TRUE(accumulate_checked(fast, gradient, sign).ok());
      EXPECT_TRUE(same_bits(fast, twin)) << count << " sign " << sign;
    }
  }
}

TEST_P(InstructionSetsTest, AdamWGivesTheTwinsBits) {
  for (const std::size_t count : {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 1000, 4099}) {
    for (const bool gives_back : {false, true}) {
      for (const bool shifts : {false, true}) {
        const AdamWInput in = adamw_input(count, count);
        AdamWOutput twin(count), fast(count);
        const std::size_t begin = count > 20 ? 3 : 0;  // no alignment beyond an element's own
        adamw_range_twin(rates_of(gives_back), kKeep, flat_of(in, twin, shifts, true), begin, count);
        adamw_range(rates_of(gives_back), kKeep, flat_of(in, fast, shifts, true), begin, count);
        const std::string name = std::to_string(count) + (gives_back ? " gives back" : "") + (shifts ? " shifts" : "");
        expect_same_floats(fast.parameters, twin.parameters, name + " parameters");
        expect_same_floats(fast.moment1, twin.moment1, name + " first moment");
        expect_same_floats(fast.moment2, twin.moment2, name + " second moment");
        EXPECT_EQ(fast.halves, twin.halves) << name;
      }
    }
  }
}

TEST_P(InstructionSetsTest, TheOuterUpdateGivesTheTwinsBits) {
  for (const std::size_t count : {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 1000, 4099}) {
    std::vector<float> anchor = any_bits(count, false, count), momentum = any_bits(count, false, count + 1);
    const std::vector<float> delta = any_bits(count, false, count + 2);
    std::vector<float> twin_anchor(count), twin_momentum(count);
    nesterov_apply_twin({0.7f, 0.9f}, {anchor, momentum, delta, twin_anchor, twin_momentum});
    nesterov_apply({0.7f, 0.9f}, {anchor, momentum, delta, anchor, momentum});  // in place
    expect_same_floats(anchor, twin_anchor, std::to_string(count) + " anchor");
    expect_same_floats(momentum, twin_momentum, std::to_string(count) + " momentum");
  }
}

TEST_P(InstructionSetsTest, ScreenFindsEveryPosition) {
  for (std::size_t count = 1; count <= 70; ++count) {
    std::vector<float> values(count, FLT_MAX);
    EXPECT_TRUE(all_finite(values));
    for (std::size_t at = 0; at < count; ++at) {
      values[at] = at % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
      EXPECT_FALSE(all_finite(values)) << at << " of " << count;
      values[at] = 0.0f;
    }
  }
}

}  // namespace
}  // namespace shoal
