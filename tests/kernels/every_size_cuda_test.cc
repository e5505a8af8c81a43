// Every kernel against its twin at the sizes around its tiles and blocks, with every beginning of its arrays; on a CPU
// in several orders of its threads too.
#include <gtest/gtest.h>

#include "kernels/device.h"

#if SHOAL_WITH_CUDA
#include "kernels/half_cuda.h"
#include "kernels/int8_tiles.h"
#include "kernels/int8_tiles_cuda.h"
#include "kernels/packed_tiles_cuda.h"
#include "tests/kernels/device_arrays.h"
#include "tests/kernels/tile_inputs.h"
#if SHOAL_CUDA_ON_HOST
#include "tests/kernels/cuda_on_host/host_grid.h"
#endif
#endif

namespace shoal {
namespace {

#if SHOAL_WITH_CUDA
#if SHOAL_CUDA_ON_HOST
using cuda_on_host::Order;
using cuda_on_host::run_in_order;
constexpr auto& kOrders = cuda_on_host::kOrders;
#else
enum class Order { kOfTheGpu };
void run_in_order(Order) {}
constexpr Order kOrders[] = {Order::kOfTheGpu};
#endif

// One less and one more than a lane's elements, a tile's, a warp's and a block's.
constexpr std::size_t kSizes[] = {0,   1,   2,   3,   4,    5,    7,    15,   16,   17,   31,   32,  33,
                                  61,  63,  64,  65,  66,   127,  128,  129,  191,  192,  193,  255, 256,
                                  257, 511, 512, 513, 1021, 1023, 1024, 1025, 1087, 2047, 2048, 2051};

class EverySizeCudaTest : public ::testing::TestWithParam<Order> {
 protected:
  void SetUp() override {
    const CudaReport report = probe_cuda();
    if (!report.usable()) GTEST_SKIP() << report.reason;
    run_in_order(GetParam());
  }
  void TearDown() override { run_in_order(kOrders[0]); }
};
INSTANTIATE_TEST_SUITE_P(Orders, EverySizeCudaTest, ::testing::ValuesIn(kOrders));

// Finite ones, and some of any bits: NaN, infinities and subnormals among them.
std::vector<float> values_of(std::size_t count) {
  std::vector<float> values = normal_values(count, 2.0f, count);
  const std::vector<float> any = any_bits(count, false, count);
  for (std::size_t i = 0; i < count; ++i)
    if (i / 64 % 3 == 2 || i % 101 == 100) values[i] = any[i];
  return values;
}

std::span<std::uint8_t> bytes_in(std::vector<std::uint16_t>& words) {
  return {reinterpret_cast<std::uint8_t*>(words.data()), 2 * words.size()};
}

// An array that begins `offset` elements behind an address of the best alignment, and ends with its last element.
template <class T>
struct OffsetArray {
  OffsetArray(std::size_t skipped, const std::vector<T>& values) : offset(skipped) {
    std::vector<T> all(skipped);
    all.insert(all.end(), values.begin(), values.end());
    array = on_device(all);
    count = all.size();
  }
  T* get() const { return array.get() + offset; }
  std::vector<T> read() const {
    const std::vector<T> all = on_host(array.get(), count);
    return {all.begin() + static_cast<std::ptrdiff_t>(offset), all.end()};
  }
  std::size_t offset, count = 0;
  DeviceArray<T> array{nullptr, nullptr};
};

// Either the launcher refuses a beginning, which its header says, or the bits are the twin's.
void expect_input_error(const Status& status, const std::string& name) {
  ASSERT_FALSE(status.ok()) << name;
  EXPECT_EQ(status.code(), ErrorCode::kInput) << name;
}

TEST_P(EverySizeCudaTest, Int8Tiles) {
  for (const std::size_t count : kSizes) {
    const std::vector<float> values = values_of(count);
    std::vector<std::int8_t> codes(count);
    std::vector<float> scales(int8_tile_count(count)), decoded(count);
    int8_quantise_twin(values, codes, scales);
    int8_dequantise_twin(codes, scales, decoded);
    for (const std::size_t offset : {0, 1, 2, 3, 4, 8, 12}) {
      const std::string name = std::to_string(count) + " from " + std::to_string(offset);
      const OffsetArray<float> device_values(offset, values), device_decoded(offset, std::vector<float>(count));
      const OffsetArray<std::int8_t> device_codes(offset, std::vector<std::int8_t>(count));
      const OffsetArray<float> device_scales(offset, std::vector<float>(scales.size()));
      const Status there =
          int8_quantise_cuda(device_values.get(), count, device_codes.get(), device_scales.get(), nullptr);
      if (offset % 4 != 0) {
        expect_input_error(there, name);
        continue;
      }
      ASSERT_TRUE(there.ok()) << name << ": " << there.error().message;
      const Status back =
          int8_dequantise_cuda(device_codes.get(), device_scales.get(), count, device_decoded.get(), nullptr);
      ASSERT_TRUE(back.ok()) << name << ": " << back.error().message;
      EXPECT_TRUE(same_bits(device_codes.read(), codes)) << name;
      EXPECT_TRUE(same_bits(device_scales.read(), scales)) << name;
      expect_same_floats(device_decoded.read(), decoded, name);
    }
  }
}

TEST_P(EverySizeCudaTest, Halves) {
  for (const HalfFormat format : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    for (const std::size_t count : kSizes) {
      std::vector<std::uint16_t> halves(count);
      std::vector<float> decoded(count);
      const std::vector<float> values = values_of(count);
      narrow_to_half_twin(format, values, bytes_in(halves));
      widen_half_twin(format, bytes_in(halves), decoded);
      for (const std::size_t offset : {0, 1, 2, 3, 4, 8, 12}) {
        const std::string name = std::to_string(count) + " from " + std::to_string(offset);
        const OffsetArray<float> device_values(offset, values), device_decoded(offset, std::vector<float>(count));
        const OffsetArray<std::uint16_t> device_halves(offset, std::vector<std::uint16_t>(count));
        const Status there = narrow_to_half_cuda(format, device_values.get(), count, device_halves.get(), nullptr);
        if (offset % 4 != 0) {
          expect_input_error(there, name);
          continue;
        }
        ASSERT_TRUE(there.ok()) << name << ": " << there.error().message;
        const Status back = widen_half_cuda(format, device_halves.get(), count, device_decoded.get(), nullptr);
        ASSERT_TRUE(back.ok()) << name << ": " << back.error().message;
        EXPECT_TRUE(same_bits(device_halves.read(), halves)) << name;
        expect_same_floats(device_decoded.read(), decoded, name);
      }
    }
  }
}

TEST_P(EverySizeCudaTest, PackedTiles) {
  const TileSeed seed{0x1234567, 3};
  for (const TileFormat format : {TileFormat::kInt4, TileFormat::kInt4Hadamard, TileFormat::kInt2}) {
    for (const std::size_t count : kSizes) {
      const std::size_t tiles = packed_tile_count(count);
      std::vector<std::uint16_t> scales(tiles);
      std::vector<std::uint8_t> codes(packed_tile_bytes(format) * tiles);
      std::vector<float> decoded(count);
      const std::vector<float> values = values_of(count);
      pack_tiles_twin(format, seed, values, bytes_in(scales), codes);
      unpack_tiles_twin(format, seed, bytes_in(scales), codes, decoded);
      for (const std::size_t offset : {0, 1, 3}) {  // no alignment but an element's own
        const std::string name = std::to_string(count) + " from " + std::to_string(offset);
        const OffsetArray<float> device_values(offset, values), device_decoded(offset, std::vector<float>(count));
        const OffsetArray<std::uint16_t> device_scales(offset, std::vector<std::uint16_t>(tiles));
        const OffsetArray<std::uint8_t> device_codes(offset, std::vector<std::uint8_t>(codes.size()));
        const Status there =
            pack_tiles_cuda(format, seed, device_values.get(), count, device_scales.get(), device_codes.get(), nullptr);
        ASSERT_TRUE(there.ok()) << name << ": " << there.error().message;
        const Status back = unpack_tiles_cuda(format, seed, device_scales.get(), device_codes.get(), count,
                                              device_decoded.get(), nullptr);
        ASSERT_TRUE(back.ok()) << name << ": " << back.error().message;
        EXPECT_TRUE(same_bits(device_codes.read(), codes)) << name;
        EXPECT_TRUE(same_bits(device_scales.read(), scales)) << name;
        expect_same_floats(device_decoded.read(), decoded, name);
      }
    }
  }
}
#endif

}  // namespace
}  // namespace shoal
