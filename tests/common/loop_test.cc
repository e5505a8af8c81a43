#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include "tests/common/event_loop_contract.h"

namespace shoal {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Real, EventLoopContract, RealLoopRig);
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, EventLoopContract, SimLoopRig);

TEST(ThreadLoopTest, PostsOfEachThreadKeepTheirOrder) {
  LoopThread thread;
  constexpr int kThreads = 4, kPosts = 2000;
  std::vector<std::vector<int>> seen(kThreads);  // loop only
  std::vector<std::thread> posters;
  for (int t = 0; t < kThreads; ++t) {
    posters.emplace_back([&, t] {
      for (int i = 0; i < kPosts; ++i)
        thread.loop().post([&, t, i] { seen[static_cast<std::size_t>(t)].push_back(i); });
    });
  }
  for (auto& poster : posters) poster.join();
  thread.call([&] {
    for (const auto& numbers : seen) {
      ASSERT_EQ(numbers.size(), static_cast<std::size_t>(kPosts));
      EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    }
  });
}

TEST(ThreadLoopTest, StopBeforeRunReturnsAtOnceAndKeepsWhatWasPosted) {
  ThreadLoop loop;
  bool ran = false;
  loop.post([&] {
    ran = true;
    loop.stop();
  });
  loop.stop();
  loop.run();
  EXPECT_FALSE(ran);
  loop.run();
  EXPECT_TRUE(ran);
}

TEST(ThreadLoopTest, StopEndsTheTurnAfterTheCurrentTask) {
  ThreadLoop loop;
  std::vector<int> order;
  loop.post([&] {
    order.push_back(1);
    loop.stop();
  });
  loop.post([&] {
    order.push_back(2);
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(order, std::vector<int>({1}));
  loop.run();
  EXPECT_EQ(order, std::vector<int>({1, 2}));
}

TEST(ThreadLoopTest, KnowsItsThread) {
  LoopThread thread;
  bool on_loop = false;
  thread.call([&] { on_loop = thread.loop().on_loop_thread(); });
  EXPECT_TRUE(on_loop);
  EXPECT_FALSE(thread.loop().on_loop_thread());
}

TEST(ThreadLoopTest, TellsTheLongestCallbackOnceAndWhatItWas) {
  LoopThread thread;
  std::optional<LongestCallback> taken[3];
  const auto take = [&](int i) { thread.call([&, i] { taken[i] = thread.loop().take_longest_callback(); }); };
  take(0);
  thread.call([&] {
    thread.loop().name_callback("short");
    thread.loop().name_callback("long");
    std::this_thread::sleep_for(20ms);
  });
  thread.call([&] { thread.loop().name_callback("short"); });
  take(1);
  take(2);
  ASSERT_TRUE(taken[1]);
  EXPECT_EQ(taken[1]->name, "long");
  EXPECT_GE(taken[1]->took, 20ms);
  ASSERT_TRUE(taken[2]);
  EXPECT_EQ(taken[2]->name, "") << "of the callback that took it";
}

TEST(ThreadLoopTest, TellsHowMuchOfAProcessorACallbackUsedAtMost) {
  LoopThread thread;
  thread.call([] { std::this_thread::sleep_for(20ms); });
  std::optional<LongestCallback> slept, burnt;
  thread.call([&] { slept = thread.loop().take_longest_callback(); });
  const auto used = [] {
    timespec time{};
    EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
    return Duration(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  };
  thread.call([&] {
    for (const Duration began = used(); used() - began < 10ms;) continue;
  });
  thread.call([&] { burnt = thread.loop().take_longest_callback(); });
  ASSERT_TRUE(slept && burnt);
  EXPECT_GE(slept->took, 20ms);
  EXPECT_LT(slept->computed, slept->took) << "who sleeps uses none";
  EXPECT_GE(burnt->computed, 10ms);
}

TEST(ThreadLoopTest, WhatACallbackCapturedDiesWithinIt) {
  LoopThread thread;
  struct Slow {
    ~Slow() { std::this_thread::sleep_for(20ms); }
  };
  thread.loop().post([slow = std::make_shared<Slow>()] {});
  std::optional<LongestCallback> longest;
  thread.call([] {});
  thread.call([&] { longest = thread.loop().take_longest_callback(); });
  ASSERT_TRUE(longest);
  EXPECT_GE(longest->took, 20ms);
}

TEST(SimLoopTest, TimeJumpsToTheNextTimer) {
  SimLoop loop;
  const TimePoint start = loop.now();
  const WallTime wall = loop.wall();
  bool ran = false;
  loop.after(std::chrono::hours(5), [&] { ran = true; });
  EXPECT_TRUE(loop.step());
  EXPECT_TRUE(ran);
  EXPECT_EQ(loop.now() - start, std::chrono::hours(5));
  EXPECT_EQ(loop.wall() - wall, std::chrono::hours(5));
  EXPECT_FALSE(loop.step());
  EXPECT_TRUE(loop.idle());
}

TEST(SimLoopTest, RunUntilRunsWhatIsDueAtItsEndAndNothingAfter) {
  SimLoop loop;
  const TimePoint end = loop.now() + 10ms;
  int ran = 0;
  loop.at(end, [&] {
    ++ran;
    loop.post([&] { ++ran; });
  });
  loop.at(end + 1us, [&] { ran += 100; });
  loop.run_until(end);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(loop.now(), end);
  loop.run_for(1ms);
  EXPECT_EQ(ran, 102);
}

std::uint64_t trace_of(std::uint64_t seed) {
  SimLoop loop;
  Rng rng(seed);
  std::function<void(int)> grow = [&](int depth) {
    loop.note(static_cast<std::uint64_t>(depth));
    if (depth == 0) return;
    for (std::uint64_t i = 0; i <= rng.below(3); ++i) {
      loop.after(std::chrono::microseconds(rng.below(50)), [&, depth] { grow(depth - 1); });
    }
    loop.post([] {});
  };
  grow(6);
  while (loop.step()) {
  }
  return loop.trace_hash();
}

TEST(SimLoopTest, SameSeedGivesTheSameTraceAndAnotherSeedAnother) {
  EXPECT_EQ(trace_of(7), trace_of(7));
  EXPECT_NE(trace_of(7), trace_of(8));
}

TEST(SimLoopDeathTest, ALivelockIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        SimLoop loop;
        std::function<void()> again = [&] { loop.post(again); };
        loop.post(again);
        loop.run_for(1ms);
      },
      "turns_at_this_time_");
}

}  // namespace
}  // namespace shoal
