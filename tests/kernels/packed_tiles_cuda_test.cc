// The CUDA kernels of 16-bit floats and of packed tiles.
#include <gtest/gtest.h>

#include "kernels/device.h"

#if SHOAL_WITH_CUDA
#include "kernels/half_cuda.h"
#include "kernels/packed_tiles_cuda.h"
#include "tests/kernels/device_arrays.h"
#include "tests/kernels/tile_inputs.h"
#endif

namespace shoal {
namespace {

class PackedTilesCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const CudaReport report = probe_cuda();
    if (!report.usable()) GTEST_SKIP() << report.reason;
  }
};

#if SHOAL_WITH_CUDA
constexpr TileFormat kFormats[] = {TileFormat::kInt4, TileFormat::kInt4Hadamard, TileFormat::kInt2};
constexpr HalfFormat kHalfFormats[] = {HalfFormat::kBf16, HalfFormat::kFp16};

std::vector<TileInput> inputs() {
  std::vector<TileInput> all = all_tile_inputs();
  all.push_back({"large", normal_values(kManyElements, 1.0f, 1)});
  return all;
}

TEST_F(PackedTilesCudaTest, HalvesGiveTheTwinsBitsBothWays) {
  for (const HalfFormat format : kHalfFormats) {
    for (const TileInput& input : inputs()) {
      const std::size_t count = input.values.size();
      std::vector<std::uint16_t> halves(count);
      std::vector<float> decoded(count);
      narrow_to_half_twin(format, input.values, bytes_in(halves));
      widen_half_twin(format, bytes_in(halves), decoded);

      const auto values = on_device(input.values);
      const auto device_halves = device_array<std::uint16_t>(count);
      const auto device_decoded = device_array<float>(count);
      ASSERT_TRUE(narrow_to_half_cuda(format, values.get(), count, device_halves.get(), nullptr).ok());
      ASSERT_TRUE(widen_half_cuda(format, device_halves.get(), count, device_decoded.get(), nullptr).ok());
      require_success(cudaDeviceSynchronize());
      EXPECT_TRUE(same_bits(on_host(device_halves.get(), count), halves)) << input.name;
      expect_same_floats(on_host(device_decoded.get(), count), decoded, input.name);
    }
  }
}

TEST_F(PackedTilesCudaTest, TilesGiveTheTwinsBitsBothWays) {
  const TileSeed seed{0x9876543210ull, 5};
  for (const TileFormat format : kFormats) {
    for (const TileInput& input : inputs()) {
      const std::size_t count = input.values.size(), tiles = packed_tile_count(count);
      std::vector<std::uint16_t> scales(tiles);
      std::vector<std::uint8_t> codes(packed_tile_bytes(format) * tiles);
      std::vector<float> decoded(count);
      pack_tiles_twin(format, seed, input.values, bytes_in(scales), codes);
      unpack_tiles_twin(format, seed, bytes_in(scales), codes, decoded);

      const auto values = on_device(input.values);
      const auto device_scales = device_array<std::uint16_t>(tiles);
      const auto device_codes = device_array<std::uint8_t>(codes.size());
      const auto device_decoded = device_array<float>(count);
      ASSERT_TRUE(
          pack_tiles_cuda(format, seed, values.get(), count, device_scales.get(), device_codes.get(), nullptr).ok());
      ASSERT_TRUE(
          unpack_tiles_cuda(format, seed, device_scales.get(), device_codes.get(), count, device_decoded.get(), nullptr)
              .ok());
      require_success(cudaDeviceSynchronize());
      EXPECT_TRUE(same_bits(on_host(device_codes.get(), codes.size()), codes)) << input.name;
      EXPECT_TRUE(same_bits(on_host(device_scales.get(), tiles), scales)) << input.name;
      expect_same_floats(on_host(device_decoded.get(), count), decoded, input.name);
    }
  }
}

TEST_F(PackedTilesCudaTest, WritesNothingBehindTheLastElement) {
  for (const std::size_t count : {1, 2, 3, 31, 33, 1023}) {
    const auto values = on_device(normal_values(count, 1.0f, count));
    const auto decoded = on_device(std::vector<float>(count + 8, 77.0f));
    for (const TileFormat format : kFormats) {
      const std::size_t bytes = packed_tile_bytes(format) * packed_tile_count(count);
      const auto scales = on_device(std::vector<std::uint16_t>(packed_tile_count(count) + 1, 77));
      const auto codes = on_device(std::vector<std::uint8_t>(bytes + 8, 77));
      ASSERT_TRUE(pack_tiles_cuda(format, {}, values.get(), count, scales.get(), codes.get(), nullptr).ok());
      ASSERT_TRUE(unpack_tiles_cuda(format, {}, scales.get(), codes.get(), count, decoded.get(), nullptr).ok());
      require_success(cudaDeviceSynchronize());
      EXPECT_EQ(on_host(scales.get(), packed_tile_count(count) + 1).back(), 77) << count;
      EXPECT_EQ(on_host(codes.get(), bytes + 8)[bytes], 77) << count;
      EXPECT_EQ(on_host(decoded.get(), count + 8)[count], 77.0f) << count;
    }
    for (const HalfFormat format : kHalfFormats) {
      const auto halves = on_device(std::vector<std::uint16_t>(count + 8, 77));
      ASSERT_TRUE(narrow_to_half_cuda(format, values.get(), count, halves.get(), nullptr).ok());
      ASSERT_TRUE(widen_half_cuda(format, halves.get(), count, decoded.get(), nullptr).ok());
      require_success(cudaDeviceSynchronize());
      EXPECT_EQ(on_host(halves.get(), count + 8)[count], 77) << count;
      EXPECT_EQ(on_host(decoded.get(), count + 8)[count], 77.0f) << count;
    }
  }
}

// Need no device: the arguments are judged before anything is launched.
TEST(PackedTilesCudaArgumentsTest, NamesAMisalignedPointer) {
  alignas(16) float values[80] = {};
  alignas(16) std::uint8_t codes[80] = {};
  alignas(16) std::uint16_t words[80] = {};
  const auto* odd_values = reinterpret_cast<const float*>(reinterpret_cast<const char*>(values) + 2);
  EXPECT_EQ(pack_tiles_cuda(TileFormat::kInt4, {}, odd_values, 64, words, codes, nullptr).code(), ErrorCode::kInput);
  EXPECT_EQ(narrow_to_half_cuda(HalfFormat::kBf16, values + 1, 64, words, nullptr).code(), ErrorCode::kInput);
  EXPECT_EQ(widen_half_cuda(HalfFormat::kFp16, words + 1, 64, values, nullptr).code(), ErrorCode::kInput);
  EXPECT_TRUE(pack_tiles_cuda(TileFormat::kInt2, {}, values, 0, words, codes, nullptr).ok());
  EXPECT_TRUE(narrow_to_half_cuda(HalfFormat::kFp16, values, 0, words, nullptr).ok());
}

TEST(PackedTilesCudaArgumentsTest, WithoutADeviceTheLaunchIsRefusedWithItsReason) {
  if (probe_cuda().usable() && !SHOAL_CUDA_ON_HOST)
    GTEST_SKIP() << "there is a GPU here: host pointers must not reach it";
  alignas(16) float values[64] = {};
  alignas(16) std::uint8_t codes[64] = {};
  alignas(16) std::uint16_t words[64] = {};
  for (const Status& status : {pack_tiles_cuda(TileFormat::kInt4Hadamard, {}, values, 64, words, codes, nullptr),
                               narrow_to_half_cuda(HalfFormat::kFp16, values, 64, words, nullptr)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
    EXPECT_NE(status.error().message.find("launch refused: "), std::string::npos) << status.error().message;
  }
}
#else
TEST_F(PackedTilesCudaTest, TilesGiveTheTwinsBitsBothWays) { FAIL() << "a build without CUDA kernels found a device"; }
#endif

}  // namespace
}  // namespace shoal
