#include <gtest/gtest.h>

#include "kernels/device.h"

#if SHOAL_WITH_CUDA
#include "kernels/int8_tiles.h"
#include "kernels/int8_tiles_cuda.h"
#include "tests/kernels/device_arrays.h"
#include "tests/kernels/tile_inputs.h"
#endif

namespace shoal {
namespace {

class Int8TilesCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const CudaReport report = probe_cuda();
    if (!report.usable()) GTEST_SKIP() << report.reason;
  }
};

#if SHOAL_WITH_CUDA
TEST_F(Int8TilesCudaTest, GivesTheTwinsBitsBothWays) {
  std::vector<TileInput> inputs = all_tile_inputs();
  inputs.push_back({"large", normal_values(kManyElements, 1.0f, 1)});
  for (const TileInput& input : inputs) {
    const std::size_t count = input.values.size();
    std::vector<std::int8_t> codes(count);
    std::vector<float> scales(int8_tile_count(count)), decoded(count);
    int8_quantise_twin(input.values, codes, scales);
    int8_dequantise_twin(codes, scales, decoded);

    const auto values = on_device(input.values);
    const auto device_codes = device_array<std::int8_t>(count);
    const auto device_scales = device_array<float>(scales.size());
    const auto device_decoded = device_array<float>(count);
    ASSERT_TRUE(int8_quantise_cuda(values.get(), count, device_codes.get(), device_scales.get(), nullptr).ok());
    ASSERT_TRUE(
        int8_dequantise_cuda(device_codes.get(), device_scales.get(), count, device_decoded.get(), nullptr).ok());
    require_success(cudaDeviceSynchronize());
    EXPECT_TRUE(same_bits(on_host(device_codes.get(), count), codes)) << input.name;
    EXPECT_TRUE(same_bits(on_host(device_scales.get(), scales.size()), scales)) << input.name;
    expect_same_floats(on_host(device_decoded.get(), count), decoded, input.name);
  }
}

TEST_F(Int8TilesCudaTest, WritesNothingBehindTheLastElement) {
  for (const std::size_t count : {1, 2, 3, 62, 65, 1023}) {
    const auto values = on_device(normal_values(count, 1.0f, count));
    const auto codes = on_device(std::vector<std::int8_t>(count + 8, 77));
    const auto scales = on_device(std::vector<float>(int8_tile_count(count) + 1, 77.0f));
    const auto decoded = on_device(std::vector<float>(count + 8, 77.0f));
    ASSERT_TRUE(int8_quantise_cuda(values.get(), count, codes.get(), scales.get(), nullptr).ok());
    ASSERT_TRUE(int8_dequantise_cuda(codes.get(), scales.get(), count, decoded.get(), nullptr).ok());
    require_success(cudaDeviceSynchronize());
    for (std::size_t i = count; i < count + 8; ++i) {
      EXPECT_EQ(on_host(codes.get(), count + 8)[i], 77) << count;
      EXPECT_EQ(on_host(decoded.get(), count + 8)[i], 77.0f) << count;
    }
    EXPECT_EQ(on_host(scales.get(), int8_tile_count(count) + 1).back(), 77.0f) << count;
  }
}

// Needs no device: the arguments are judged before anything is launched.
TEST(Int8TilesCudaArgumentsTest, NamesAMisalignedPointer) {
  alignas(16) float values[80] = {};
  alignas(16) std::int8_t codes[80] = {};
  float scales[2] = {};
  EXPECT_EQ(int8_quantise_cuda(values + 1, 64, codes, scales, nullptr).code(), ErrorCode::kInput);
  EXPECT_EQ(int8_dequantise_cuda(codes + 1, scales, 64, values, nullptr).code(), ErrorCode::kInput);
  EXPECT_TRUE(int8_quantise_cuda(values, 0, codes, scales, nullptr).ok());
}

TEST(Int8TilesCudaArgumentsTest, WithoutADeviceTheLaunchIsRefusedWithItsReason) {
  if (probe_cuda().usable() && !SHOAL_CUDA_ON_HOST)
    GTEST_SKIP() << "there is a GPU here: host pointers must not reach it";
  alignas(16) float values[64] = {};
  alignas(16) std::int8_t codes[64] = {};
  float scales[1] = {};
  const Status status = int8_quantise_cuda(values, 64, codes, scales, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_NE(status.error().message.find("launch refused: "), std::string::npos) << status.error().message;
}
#else
TEST_F(Int8TilesCudaTest, GivesTheTwinsBitsBothWays) { FAIL() << "a build without CUDA kernels found a device"; }
#endif

}  // namespace
}  // namespace shoal
