// The judge itself: each mistake is found, and the same kernel without it is let go.
#include "tests/kernels/cuda_on_host/host_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/cuda_on_host/cuda_runtime.h"
#include "tests/kernels/cuda_on_host/wrong_kernels.h"
#include "tests/kernels/device_arrays.h"
#include "tests/kernels/tile_inputs.h"

namespace shoal::cuda_on_host {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

struct Outcome {
  std::string mistake;  // empty: none was seen
  std::vector<float> out;
};

// 150 elements: two blocks are whole, the third ends within its first warp.
constexpr std::size_t kCount = 150;

Outcome run(Mistake mistake, bool wrong, Order order) {
  run_in_order(order);
  const auto in = on_device(normal_values(kCount, 1.0f, 7));
  const auto out = on_device(std::vector<float>(kCount, 0.0f));
  const Status status = run_kernel(mistake, wrong, in.get(), kCount, out.get());
  run_in_order(Order::kForward);
  return {status.ok() ? "" : status.error().message, on_host(out.get(), kCount)};
}

class HostGridTest : public ::testing::TestWithParam<Order> {};
INSTANTIATE_TEST_SUITE_P(Orders, HostGridTest, ::testing::ValuesIn(kOrders), [](const auto& info) {
  return std::string(info.param == Order::kForward    ? "Forward"
                     : info.param == Order::kBackward ? "Backward"
                                                      : "Shuffled");
});

// As a regular expression of GoogleTest, which knows no alternatives.
std::string said_of(Mistake mistake) {
  switch (mistake) {
    case Mistake::kTail:
      return ".*thread 22 of block 2 writes 4 bytes 0 bytes behind the end of an array of 600";
    case Mistake::kVectorTail:
      return ".*thread 37 of block 0 reads .* of an array of 600";
    case Mistake::kNoBarrier:
      return ".*4 bytes at byte .* of shared memory, which .* with no order between them";
    case Mistake::kNoSyncWarp:
      return ".*reads 4 bytes at byte .* of shared memory, which .*";
    case Mistake::kNobodyWrote:
      return ".*reads 4 bytes at byte .* of shared memory, which nothing has written";
    case Mistake::kBarrierInBranch:
      return ".*waits for ever in __syncthreads .line .*: thread 22 of block 2 has left";
    case Mistake::kLeavesEarly:
      return ".*waits for ever in __shfl_down_sync .line .*: thread 22 of block 2 has left";
    case Mistake::kLaneTakesNoPart:
      return ".*reads in __shfl_xor_sync .* from lane [0-9]*, which takes no part";
    case Mistake::kTwoBlocks:
      return ".*writes 4 bytes at byte .* of an array, which .* writes with no order between them";
    case Mistake::kAlignment:
      return ".*an address that is not a multiple of 16 at .*wrong_kernels.cu:[0-9]* .4 over.";
    case Mistake::kWrongLane:
    case Mistake::kOrder:
      break;  // what they give is wrong, not how
  }
  return "";
}

TEST_P(HostGridTest, FindsEachMistakeAndLetsTheSameKernelGoWithoutIt) {
  for (const Mistake mistake : kMistakes) {
    const Outcome right = run(mistake, false, GetParam());
    EXPECT_EQ(right.mistake, "") << static_cast<int>(mistake);
    const Outcome wrong = run(mistake, true, GetParam());
    EXPECT_THAT(wrong.mistake, MatchesRegex(said_of(mistake))) << static_cast<int>(mistake);
  }
}

TEST_P(HostGridTest, AWrongLaneShowsInWhatIsComputed) {
  const std::vector<float> in = normal_values(kCount, 1.0f, 7);
  const auto whole_warp = [&](std::size_t first) {
    double sum = 0;
    for (std::size_t i = first; i < std::min(first + 32, kCount); ++i) sum += in[i];
    return sum;
  };
  const Outcome right = run(Mistake::kWrongLane, false, GetParam()), wrong = run(Mistake::kWrongLane, true, GetParam());
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_NEAR(right.out[i], whole_warp(i / 32 * 32), 1e-4) << i;
    EXPECT_GT(std::abs(wrong.out[i] - whole_warp(i / 32 * 32)), 1e-3) << i;
  }
}

TEST(HostGridTest, WhatDependsOnWhoComesFirstShowsBetweenTwoOrders) {
  const float forward = run(Mistake::kOrder, true, Order::kForward).out[0];
  const float backward = run(Mistake::kOrder, true, Order::kBackward).out[0];
  EXPECT_NEAR(forward, backward, 1e-4);
  EXPECT_NE(forward, backward);
  for (const Order order : kOrders) EXPECT_EQ(run(Mistake::kOrder, false, order).out[0], float{kCount});
}

TEST(HostGridTest, KernelsReachNoMemoryOfTheHostAndNoArrayThatWasFreed) {
  const std::vector<float> values(kCount, 1.0f);
  const auto out = device_array<float>(kCount);
  const Status host = run_kernel(Mistake::kTail, false, values.data(), kCount, out.get());
  ASSERT_FALSE(host.ok());
  EXPECT_THAT(host.error().message,
              AllOf(HasSubstr("thread 0 of block 0 reads 4 bytes "), HasSubstr("no array of the device")));
  auto in = on_device(values);
  const float* freed = in.get();
  in.reset();
  EXPECT_FALSE(run_kernel(Mistake::kTail, false, freed, kCount, out.get()).ok());
}

TEST(HostGridTest, AnArrayThatNothingWroteIsNotRead) {
  const auto in = device_array<float>(kCount), out = device_array<float>(kCount);
  const Status status = run_kernel(Mistake::kTail, false, in.get(), kCount, out.get());
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("reads 4 bytes at byte 0 of an array, which nothing has written"));
}

TEST(HostGridTest, AKernelThatWasEndedLeavesNothingBehind) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(run(Mistake::kBarrierInBranch, true, Order::kForward).mistake, "");
    EXPECT_EQ(run(Mistake::kBarrierInBranch, false, Order::kForward).out, normal_values(kCount, 1.0f, 7));
  }
}

TEST(HostGridTest, RefusesGridsThatNoGpuRuns) {
  void* none[1] = {};
  const auto call = [](Kernel, void**) {};
  EXPECT_EQ(run_grid(call, nullptr, dim3(1), dim3(1025), none), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run_grid(call, nullptr, dim3(0), dim3(32), none), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run_grid(call, nullptr, dim3(2, 2), dim3(4, 4, 4), none), cudaSuccess);
}

TEST(HostGridTest, ConvertsFloatsAsAGpuDoes) {
  EXPECT_EQ(__float2int_rn(2.5f), 2);
  EXPECT_EQ(__float2int_rn(-3.5f), -4);
  EXPECT_EQ(__float2int_rn(1e30f), INT32_MAX);
  EXPECT_EQ(__float2int_rn(-1e30f), INT32_MIN);
  EXPECT_EQ(__float2int_rn(NAN), 0);
}

}  // namespace
}  // namespace shoal::cuda_on_host
