// A container of 2 GiB on a machine of 64 has 2 GiB.
#include <gtest/gtest.h>

#include <filesystem>

#include "common/os/resident_memory.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;

class AvailableMemoryTest : public testing::Test {
 protected:
  AvailableMemoryTest() {
    write("proc/meminfo", "MemTotal: 67108864 kB\nMemFree: 1048576 kB\nMemAvailable: 33554432 kB\nBuffers: 1 kB\n");
  }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ / path).parent_path());
    root_.write(path, text);
  }
  std::uint64_t available() const { return available_memory(root_.path()); }

  ScratchFolder root_;
};

TEST_F(AvailableMemoryTest, WithoutControlGroupsItIsWhatTheMachineHasLeft) { EXPECT_EQ(available(), 32 * kGibibyte); }

TEST_F(AvailableMemoryTest, AGroupsLimitLessWhatItHoldsCountsAndItsCachesGiveWay) {
  write("proc/self/cgroup", "0::/service\n");
  write("sys/fs/cgroup/service/memory.max", "2147483648\n");
  write("sys/fs/cgroup/service/memory.current", "1610612736\n");
  write("sys/fs/cgroup/service/memory.stat", "anon 1\ninactive_file 1073741824\nactive_file 7\n");
  EXPECT_EQ(available(), 2 * kGibibyte - kGibibyte / 2);
}

TEST_F(AvailableMemoryTest, TheLimitOfAGroupAboveCounts) {
  write("proc/self/cgroup", "0::/pod/container\n");
  write("sys/fs/cgroup/pod/container/memory.max", "max\n");
  write("sys/fs/cgroup/pod/container/memory.current", "4096\n");
  write("sys/fs/cgroup/pod/memory.max", "1073741824\n");
  write("sys/fs/cgroup/pod/memory.current", "0\n");
  EXPECT_EQ(available(), kGibibyte);
}

TEST_F(AvailableMemoryTest, AContainerThatSeesOnlyItsOwnGroupHasItAtTheRoot) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  write("sys/fs/cgroup/memory.current", "0\n");
  EXPECT_EQ(available(), kGibibyte);
}

TEST_F(AvailableMemoryTest, TheFirstVersionsGroupsCountToo) {
  write("proc/self/cgroup", "5:cpu:/other\n4:memory:/job\n0::/\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3221225472\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1073741824\n");
  EXPECT_EQ(available(), 2 * kGibibyte);
}

TEST_F(AvailableMemoryTest, AGroupThatHoldsMoreThanItsLimitHasNothingLeft) {
  write("proc/self/cgroup", "0::/service\n");
  write("sys/fs/cgroup/service/memory.max", "100\n");
  write("sys/fs/cgroup/service/memory.current", "200\n");
  EXPECT_EQ(available(), 1u) << "0 says that nothing is known";
}

}  // namespace
}  // namespace shoal
