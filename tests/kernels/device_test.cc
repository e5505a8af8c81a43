#include "kernels/device.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(DeviceTest, EitherListsDevicesOrSaysWhyThereAreNone) {
  const CudaReport report = probe_cuda();
  EXPECT_EQ(report.usable(), report.reason.empty()) << report.reason;
  for (const CudaDevice& device : report.devices) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_GT(device.memory_bytes, 0u);
    EXPECT_GT(device.capability_major, 0);
  }
}

TEST(DeviceTest, ProbingTwiceAgrees) {
  const CudaReport first = probe_cuda();
  const CudaReport second = probe_cuda();
  EXPECT_EQ(first.devices.size(), second.devices.size());
  EXPECT_EQ(first.reason, second.reason);
}

// Beside it stands kernels_on_host_test, a build that always has them.
TEST(DeviceTest, ABuildWithoutCudaKernelsSaysWhatComputesInTheirPlace) {
  const std::string text = cuda_kernels_text();
#if SHOAL_WITH_CUDA
  EXPECT_TRUE(text.starts_with("in this build")) << text;
#else
  EXPECT_TRUE(text.starts_with("not in this build")) << text;
  EXPECT_NE(text.find("tensor operations make steps"), std::string::npos) << text;
  EXPECT_NE(text.find("the CPU codes tensors"), std::string::npos) << text;
#endif
}

}  // namespace
}  // namespace shoal
