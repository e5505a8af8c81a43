// The device's thread against a real loop. Built with TSan (scripts/test --all), these tests also see a hand-over that
// only luck makes right: what they share is plain memory, ordered by the queue alone.
#include "common/os/work_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/common/loop_rig.h"

namespace shoal {
namespace {

TEST(WorkQueueTest, JobsRunInOrderOnOneOtherThreadAndWhatFollowsEachOnTheLoop) {
  constexpr int kJobs = 500;
  std::vector<int> ran;                         // device, then the test when all is over
  std::vector<int> results(kJobs), told;        // a slot: device, then loop; `told`: loop
  std::vector<std::thread::id> threads(kJobs);  // as `results`
  std::vector<int> all(kJobs);
  std::iota(all.begin(), all.end(), 0);
  RealLoopRig rig;
  const auto device = make_work_thread(rig.loop());
  const bool finished = rig.run([&](const Finish& finish) {
    for (int i = 0; i < kJobs; ++i) {
      const auto slot = static_cast<std::size_t>(i);
      const auto job = [&, i, slot] {
        ran.push_back(i);
        results[slot] = i;
        threads[slot] = std::this_thread::get_id();
      };
      device->run(WorkKind::kForward, job, [&, i, slot, finish] {
        told.push_back(results[slot]);
        EXPECT_EQ(threads[slot], threads[0]);
        EXPECT_NE(threads[slot], std::this_thread::get_id());
        if (i == kJobs - 1) finish();
      });
    }
  });
  ASSERT_TRUE(finished);
  EXPECT_EQ(ran, all);
  EXPECT_EQ(told, all);
}

TEST(WorkQueueTest, WhatAJobHeldIsFreedOnTheDeviceBeforeTheLoopHearsOfIt) {
  struct Held {
    std::thread::id* freed_on;
    ~Held() { *freed_on = std::this_thread::get_id(); }
  };
  std::thread::id ran_on, freed_on;
  bool was_freed = false;
  RealLoopRig rig;
  const auto device = make_work_thread(rig.loop());
  const bool finished = rig.run([&](const Finish& finish) {
    auto held = std::make_shared<Held>(Held{&freed_on});
    freed_on = {};  // of the temporary
    device->run(
        WorkKind::kForward, [&ran_on, held = std::move(held)] { ran_on = std::this_thread::get_id(); },
        [&, finish] {
          was_freed = freed_on == ran_on && ran_on != std::this_thread::get_id();
          finish();
        });
  });
  ASSERT_TRUE(finished);
  EXPECT_TRUE(was_freed);
}

TEST(WorkQueueTest, ItsEndFinishesTheJobThatRunsAndDropsTheRest) {
  RealLoopRig rig;
  std::promise<void> runs, may_end;
  bool first = false, second = false;
  auto device = make_work_thread(rig.loop());
  device->run(
      WorkKind::kBackward,
      [&] {
        runs.set_value();
        may_end.get_future().wait();
        first = true;
      },
      [] {});
  device->run(
      WorkKind::kBackward, [&] { second = true; }, [] {});
  runs.get_future().wait();
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the destructor is waiting by then
    may_end.set_value();
  });
  device.reset();
  releaser.join();
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
}

}  // namespace
}  // namespace shoal
