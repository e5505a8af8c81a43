// How threads of computing processes ask the kernel to be scheduled.
#include "common/os/batch_work.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <thread>

namespace shoal {
namespace {

struct Scheduling {
  std::uint32_t policy = 0;
  std::chrono::nanoseconds slice{0};  // 0 where the kernel has none a thread
};

// By number: glibc has no such call, and the kernel's header cannot stand beside <sched.h> everywhere.
Scheduling scheduling_of_this_thread() {
  std::array<std::uint64_t, 7>
      attributes{};  // size and policy, flags, nice and priority, runtime, deadline, period, utilisation
  EXPECT_EQ(syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0), 0);
  return {static_cast<std::uint32_t>(attributes[0] >> 32), std::chrono::nanoseconds(attributes[3])};
}

TEST(BatchWorkTest, ALongSliceKeepsThePolicyAndIsTheThreadsAlone) {
  constexpr std::uint32_t kBatch = 3;
  Scheduling computing, other;
  std::thread starter([&] {
    begin_batch_work();
    std::thread([&] { other = scheduling_of_this_thread(); }).join();
    std::thread([&] {
      take_long_slices();
      computing = scheduling_of_this_thread();
    }).join();
    EXPECT_EQ(scheduling_of_this_thread().slice, other.slice);
  });
  starter.join();
  EXPECT_EQ(other.policy, kBatch);
  EXPECT_EQ(computing.policy, kBatch);
  if (other.slice.count() == 0) GTEST_SKIP() << "this kernel has no time slice a thread (Linux 6.12 and later have)";
  EXPECT_EQ(computing.slice, std::chrono::milliseconds(20));
  EXPECT_LT(other.slice, computing.slice);
}

}  // namespace
}  // namespace shoal
