// The kernel's own count, on a processor that two threads share: what is compared is what the kernel must do, not how
// long it takes.
#include "common/os/thread_waits.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <string>
#include <thread>

#include "common/os/thread_loop.h"

namespace shoal {
namespace {

constexpr Duration kWork = 200ms;

// Computes until the calling thread has used so much more of its processor.
void compute() {
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto before = used();
  while (used() - before < kWork) {
  }
}

// Whether this thread of the process waits for something, by the state that the kernel gives behind its name.
bool is_blocked(pid_t thread) {
  std::string facts;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), facts);
  const std::size_t name_end = facts.rfind(')');
  return name_end != facts.npos && facts.substr(name_end).starts_with(") S");
}

// The calling thread, and those that it starts, run on the first processor that this process may use.
void stay_on_one_processor() {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

struct Measured {
  Duration passed{}, waited{};
};

class ThreadWaitsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "this kernel does not count";
  }

  // `job` on a thread named "device" whose processor another thread keeps busy; what passed, and what threads of `name`
  // waited.
  static Measured measure(const std::string& name, const std::function<void()>& job) {
    std::atomic<bool> over = false;
    std::thread other([&] {
      stay_on_one_processor();
      while (!over) {
      }
    });
    std::latch named(1), begin(1), ended(1), looked(1);
    const TimePoint start = monotonic_now();  // no wait of the thread is older
    std::thread device([&] {
      pthread_setname_np(pthread_self(), "device");
      stay_on_one_processor();
      named.count_down();
      begin.wait();
      job();
      ended.count_down();
      looked.wait();
    });
    named.wait();
    ThreadWaits waits(name);
    EXPECT_EQ(waits.longest(start), Duration::zero());
    begin.count_down();
    ended.wait();
    const Duration waited = waits.longest(start + ThreadWaits::kEvery);
    const Measured measured{monotonic_now() - start, waited};
    looked.count_down();
    over = true;
    other.join();
    device.join();
    return measured;
  }
};

TEST_F(ThreadWaitsTest, AThreadThatComputesBesideAnotherWaitsForItsProcessor) {
  const Measured measured = measure("device", compute);
  EXPECT_GT(measured.waited, Duration::zero());
  EXPECT_GE(measured.passed - measured.waited, kWork) << "what it computed it did not wait";
}

TEST_F(ThreadWaitsTest, AThreadThatIsBlockedStarvesOfNothing) {
  std::latch begin(1), done(1);
  pid_t device = 0;
  std::thread worker([&] {
    begin.wait();
    while (!is_blocked(device)) {
    }
    compute();
    done.count_down();
  });
  const Measured measured = measure("device", [&] {
    device = ::gettid();
    begin.count_down();
    done.wait();
  });
  worker.join();
  EXPECT_GE(measured.passed - measured.waited, kWork);
}

TEST_F(ThreadWaitsTest, AThreadThatANamedOneStartedIsFoundWithIt) {
  std::latch looked(1);
  std::thread pool;
  std::latch computed(1);
  const Measured measured = measure("device", [&] {
    pool = std::thread([&] {
      compute();
      computed.count_down();
      looked.wait();
    });
    computed.wait();
  });
  looked.count_down();
  pool.join();
  EXPECT_GT(measured.waited, Duration::zero());
  EXPECT_GE(measured.passed - measured.waited, kWork);
}

TEST_F(ThreadWaitsTest, ThreadsOfOtherNamesDoNotCount) {
  EXPECT_EQ(measure("aside", compute).waited, Duration::zero());
}

}  // namespace
}  // namespace shoal
