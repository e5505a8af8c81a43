// Every kernel against its twin at the sizes around its tiles and blocks, with every beginning of its arrays; on a CPU
// in several orders of its threads too.
#include <gtest/gtest.h>

#include "kernels/device.h"

#if SHOAL_WITH_CUDA
#include "kernels/accumulate_cuda.h"
#include "kernels/adamw_cuda.h"
#include "kernels/adamw_rule.h"
#include "kernels/half_cuda.h"
#include "kernels/int8_tiles.h"
#include "kernels/int8_tiles_cuda.h"
#include "kernels/norm.h"
#include "kernels/packed_tiles_cuda.h"
#include "tests/kernels/adamw_arrays.h"
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

// ---- Accumulation

// What a launcher returned; a text, so that one line tells what went wrong.
std::string said(const Status& status) { return status.ok() ? "" : status.error().message; }

TEST_P(EverySizeCudaTest, Accumulation) {
  for (const std::size_t count : kSizes) {
    const std::vector<float> start = any_bits(count, true, 3 * count), gradient = any_bits(count, true, 3 * count + 1);
    for (const float sign : {1.0f, -1.0f}) {
      std::vector<float> expected = start;
      accumulate_twin(expected, gradient, sign);
      for (const std::size_t offset : {0, 1, 2, 3}) {
        const std::string name = std::to_string(count) + " from " + std::to_string(offset);
        const OffsetArray<float> sum(offset, start), added(offset, gradient);
        const auto screen = device_array<NonFinite>(1);
        ASSERT_EQ(said(begin_screen_cuda(screen.get(), nullptr)), "");
        ASSERT_EQ(said(screen_cuda(added.get(), count, 0, screen.get(), nullptr)), "") << name;
        ASSERT_EQ(said(accumulate_unless_cuda(screen.get(), sum.get(), added.get(), count, sign, nullptr)), "") << name;
        EXPECT_EQ(on_host(screen.get(), 1)[0].count, 0u) << name;
        EXPECT_EQ(on_host(screen.get(), 1)[0].first, kNothingFound) << name;
        EXPECT_TRUE(same_bits(sum.read(), expected)) << name;
      }
    }
  }
}

// Two tensors of one gradient: what is found in the second keeps the first from being added.
TEST_P(EverySizeCudaTest, NothingIsAddedWhenOneElementOfAnyTensorIsNotFinite) {
  const std::size_t sizes[] = {1100, 700};
  for (const std::vector<std::size_t>& at : std::vector<std::vector<std::size_t>>{
           {0}, {1099}, {1100}, {1799}, {255, 256}, {1023, 1024, 1500}, {3, 4, 5, 6, 1798}}) {
    std::vector<float> gradient = any_bits(1800, true, 5);
    for (const std::size_t i : at) gradient[i] = i % 2 == 0 ? INFINITY : NAN;
    const NonFinite expected = screen_twin(gradient);
    ASSERT_EQ(expected.count, at.size());
    ASSERT_EQ(expected.first, at.front());
    const std::vector<float> start = normal_values(1800, 1.0f, 6);
    const auto sum = on_device(start), added = on_device(gradient);
    const auto screen = device_array<NonFinite>(1);
    ASSERT_EQ(said(begin_screen_cuda(screen.get(), nullptr)), "");
    for (std::size_t tensor = 0, first = 0; tensor < 2; first += sizes[tensor++])
      ASSERT_EQ(said(screen_cuda(added.get() + first, sizes[tensor], first, screen.get(), nullptr)), "");
    for (std::size_t tensor = 0, first = 0; tensor < 2; first += sizes[tensor++])
      ASSERT_EQ(said(accumulate_unless_cuda(screen.get(), sum.get() + first, added.get() + first, sizes[tensor], 1.0f,
                                            nullptr)),
                "");
    EXPECT_EQ(on_host(screen.get(), 1)[0].count, expected.count);
    EXPECT_EQ(on_host(screen.get(), 1)[0].first, expected.first);
    EXPECT_TRUE(same_bits(on_host(sum.get(), 1800), start));
  }
}

// ---- The norm and AdamW

// The norm of the device's block sums, and what the gradient sum is multiplied with.
StepScale scale_on_device(const std::vector<float>& gradient, std::uint64_t targets, double clip_norm) {
  const std::size_t blocks = (gradient.size() + kNormBlock - 1) / kNormBlock;
  const auto values = on_device(gradient);
  const auto sums = device_array<double>(blocks);
  const auto scale = device_array<StepScale>(1);
  EXPECT_EQ(said(norm_blocks_cuda(values.get(), gradient.size(), sums.get(), nullptr)), "");
  EXPECT_EQ(said(step_scale_cuda(sums.get(), blocks, targets, clip_norm, scale.get(), nullptr)), "");
  return on_host(scale.get(), 1)[0];
}

TEST_P(EverySizeCudaTest, NormsAndTheirScale) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{9},
                                  kNormBlock - 1, kNormBlock, kNormBlock + 1, 3 * kNormBlock + 5}) {
    std::vector<float> gradient = any_bits(count, true, count);
    for (float& value : gradient) value = std::ldexp(value, std::abs(value) > 1e10f ? -100 : 0);
    for (const double clip_norm : {0.0, 1e-9, 1e9}) {
      const StepScale twin = step_scale(sum_of_squares(gradient), 17, clip_norm);
      const StepScale got = scale_on_device(gradient, 17, clip_norm);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(got.norm), std::bit_cast<std::uint64_t>(twin.norm)) << count;
      EXPECT_EQ(got.gradient_scale, twin.gradient_scale) << count;
      EXPECT_EQ(got.usable, twin.usable) << count;
    }
  }
  for (const float bad : {NAN, INFINITY, 3e30f}) {
    std::vector<float> gradient = normal_values(kNormBlock + 100, 1.0f, 1);
    gradient[kNormBlock + 50] = bad;
    EXPECT_EQ(scale_on_device(gradient, 1, 1.0).usable, 0u) << bad;
  }
}

// More sums than one round of the adding block fetches.
TEST_P(EverySizeCudaTest, SumsOfManyBlocksAreAddedInTheirOrder) {
  for (const std::size_t count : {1, 255, 256, 257, 512, 700}) {
    std::vector<double> sums(count);
    double total = 0;
    for (std::size_t i = 0; i < count; ++i) total += sums[i] = std::exp(static_cast<double>(i * 7919 % 61) - 30);
    const auto there = on_device(sums);
    const auto scale = device_array<StepScale>(1);
    ASSERT_EQ(said(step_scale_cuda(there.get(), count, 3, 0, scale.get(), nullptr)), "");
    EXPECT_EQ(on_host(scale.get(), 1)[0].norm, step_scale(total, 3, 0).norm) << count;
  }
}

struct DeviceStep {
  explicit DeviceStep(const AdamWInput& in, std::size_t offset)
      : parameters(offset, in.parameters),
        gradient_sum(offset, in.gradient_sum),
        moment1(offset, in.moment1),
        moment2(offset, in.moment2),
        shift(offset, in.shift),
        parameters_out(offset, std::vector<float>(in.parameters.size())),
        halves(offset, std::vector<std::uint16_t>(in.parameters.size())) {}
  // The moments are changed in their place, the parameters are written elsewhere: as an executor has them.
  AdamWFlat flat(bool shifts, bool with_halves) const {
    AdamWFlat a;
    a.parameters = parameters.get();
    a.gradient_sum = gradient_sum.get();
    a.moment1 = a.moment1_out = moment1.get();
    a.moment2 = a.moment2_out = moment2.get();
    a.shift = shifts ? shift.get() : nullptr;
    a.parameters_out = parameters_out.get();
    a.halves = with_halves ? halves.get() : nullptr;
    return a;
  }
  OffsetArray<float> parameters, gradient_sum, moment1, moment2, shift, parameters_out;
  OffsetArray<std::uint16_t> halves;
};

// Ranges of one element and more, decaying and not, one of them skipped.
std::vector<AdamWRange> ranges_of(std::size_t count) {
  const AdamWRange kinds[] = {{0, kKeep, 0}, {0, 1.0f, 0}, {0, 1.0f, 1}};
  std::vector<AdamWRange> ranges;
  for (std::size_t end = 0, size = 1; end < count; size = size * 5 % 331 + 1) {
    end = std::min(end + size, count);
    ranges.push_back(kinds[ranges.size() % 3]);
    ranges.back().end = end;
  }
  return ranges;
}

TEST_P(EverySizeCudaTest, AdamW) {
  for (const std::size_t count : kSizes) {
    if (count == 0) continue;
    const AdamWInput in = adamw_input(count, count);
    const std::vector<AdamWRange> ranges = ranges_of(count);
    const auto device_ranges = on_device(ranges);
    for (const bool gives_back : {false, true}) {
      for (const std::size_t offset : {0, 1}) {
        const bool shifts = gives_back == (count % 2 == 0), with_halves = offset == 0;
        const AdamWRates rates = rates_of(gives_back);
        AdamWOutput twin(count);
        twin.moment1 = in.moment1;
        twin.moment2 = in.moment2;
        for (std::size_t r = 0, begin = 0; r < ranges.size(); begin = ranges[r++].end) {
          if (ranges[r].skipped == 0)
            adamw_range_twin(rates, ranges[r].keep, flat_of(in, twin, shifts, with_halves), begin, ranges[r].end);
        }
        const DeviceStep step(in, offset);
        AdamWRates without = rates;
        without.gradient_scale = 0;
        const auto scale = on_device(std::vector<StepScale>{{1.0, rates.gradient_scale, 1}});
        ASSERT_EQ(said(adamw_cuda(without, scale.get(), device_ranges.get(), ranges.size(),
                                  step.flat(shifts, with_halves), count, nullptr)),
                  "")
            << count;
        const std::string name = std::to_string(count);
        expect_same_floats(step.parameters_out.read(), twin.parameters, name + " parameters");
        expect_same_floats(step.moment1.read(), twin.moment1, name + " first moment");
        expect_same_floats(step.moment2.read(), twin.moment2, name + " second moment");
        EXPECT_TRUE(same_bits(step.halves.read(), twin.halves)) << name;
      }
    }
  }
}

TEST_P(EverySizeCudaTest, AdamWWritesNothingForASumThatIsNotUsable) {
  const AdamWInput in = adamw_input(1500, 1);
  const DeviceStep step(in, 0);
  const auto ranges = on_device(ranges_of(1500));
  const auto scale = on_device(std::vector<StepScale>{{INFINITY, 0.5f, 0}});
  ASSERT_EQ(said(adamw_cuda(rates_of(true), scale.get(), ranges.get(), ranges_of(1500).size(), step.flat(true, true),
                            1500, nullptr)),
            "");
  EXPECT_TRUE(same_bits(step.parameters_out.read(), std::vector<float>(1500)));
  EXPECT_TRUE(same_bits(step.moment1.read(), in.moment1));
  EXPECT_TRUE(same_bits(step.moment2.read(), in.moment2));
  EXPECT_TRUE(same_bits(step.halves.read(), std::vector<std::uint16_t>(1500)));
}
#endif

}  // namespace
}  // namespace shoal
