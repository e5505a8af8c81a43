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

}  // namespace
}  // namespace shoal
