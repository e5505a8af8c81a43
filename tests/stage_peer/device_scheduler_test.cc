#include "runtime/stage_peer/device_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "stages/integer_executor.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal {
namespace {

using testing::ElementsAre;

// A device whose jobs run and end when the test says so.
class HeldDevice final : public WorkQueue {
 public:
  void run(WorkKind, std::function<void()> job, std::function<void()> done) override {
    jobs_.push_back({std::move(job), std::move(done)});
  }
  std::size_t held() const { return jobs_.size(); }
  void finish() {
    ASSERT_FALSE(jobs_.empty());
    const auto [job, done] = std::move(jobs_.front());
    jobs_.erase(jobs_.begin());
    job();
    done();
  }

 private:
  std::vector<std::pair<std::function<void()>, std::function<void()>>> jobs_;
};

class HeldClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  WallTime wall() const override { return {}; }
  void pass(Duration time) { now_ += time; }

 private:
  TimePoint now_{};
};

struct DeviceSchedulerTest : testing::Test {
  bool start_next() {
    ++asked_for_a_job;
    if (own.empty()) return false;
    const std::string name = own.front();
    own.erase(own.begin());
    scheduler->run(WorkKind::kForward, note(name), note_after(name));
    return true;
  }
  std::function<void(StageExecutor&)> note(const std::string& name) {
    return [this, name](StageExecutor& given) {
      EXPECT_EQ(&given, executor.get());
      log.push_back(name);
    };
  }
  std::function<void()> note_after(const std::string& name) {
    return [this, name] { log.push_back("after " + name); };
  }
  void ask(const std::string& name) { scheduler->ask(WorkKind::kImage, note(name), note_after(name)); }

  HeldDevice device;
  HeldClock clock;
  std::shared_ptr<StageExecutor> executor = std::make_shared<IntegerExecutor>(test::tiny_spec());
  std::vector<std::string> own;  // jobs of the source, in order
  std::vector<std::string> log;
  int asked_for_a_job = 0;
  std::unique_ptr<DeviceScheduler> scheduler = std::make_unique<DeviceScheduler>(
      device, clock, executor, std::vector<JobSource>{[this] { return start_next(); }});
};

TEST_F(DeviceSchedulerTest, MeasuresItsJobsByKind) {
  own = {"a"};
  scheduler->pump();
  clock.pass(12s);
  EXPECT_EQ(scheduler->running(), 12s);
  EXPECT_EQ(scheduler->longest_of_kind(), 0s) << "none of them is finished";
  device.finish();
  EXPECT_EQ(scheduler->running(), 0s);
  EXPECT_EQ(scheduler->longest_of_kind(), 12s);
  ask("another kind");
  EXPECT_EQ(scheduler->longest_of_kind(), 0s);
  EXPECT_EQ(scheduler->longest(), 12s);
}

// A first undo or abandon that hangs is no first forward, which may compile and fill caches.
TEST(JobTimesTest, AFirstOfALightKindIsMeasuredByTheHeavierThatCameBefore) {
  JobTimes times;
  EXPECT_EQ(times.longest(WorkKind::kAbandon), 0s) << "nothing is known";
  times.note(WorkKind::kSnapshot, 3s);
  for (const WorkKind light :
       {WorkKind::kUndo, WorkKind::kShift, WorkKind::kRelease, WorkKind::kCommit, WorkKind::kAbandon, WorkKind::kDrop})
    EXPECT_EQ(times.longest(light), 3s) << name_of(light);
  EXPECT_EQ(times.longest(WorkKind::kBackward), 0s);
  times.note(WorkKind::kAbandon, 1s);
  EXPECT_EQ(times.longest(WorkKind::kAbandon), 1s) << "its own kind is known";
}

TEST_F(DeviceSchedulerTest, GivesTheDeviceOneJobAtATime) {
  own = {"a", "b"};
  scheduler->pump();
  scheduler->pump();
  EXPECT_EQ(device.held(), 1u);
  EXPECT_FALSE(scheduler->idle());
  device.finish();
  EXPECT_EQ(device.held(), 1u);
  EXPECT_THAT(log, ElementsAre("a", "after a"));
  device.finish();
  EXPECT_THAT(log, ElementsAre("a", "after a", "b", "after b"));
  EXPECT_TRUE(scheduler->idle());
}

TEST_F(DeviceSchedulerTest, WhatWasAskedForGoesFirstAndInOrder) {
  own = {"a", "b"};
  scheduler->pump();
  ask("x");
  ask("y");
  EXPECT_EQ(device.held(), 1u);
  while (device.held() > 0) device.finish();
  EXPECT_THAT(log, ElementsAre("a", "after a", "x", "after x", "y", "after y", "b", "after b"));
}

TEST_F(DeviceSchedulerTest, AnIdleDeviceIsAskedForAtOnce) {
  ask("x");
  EXPECT_EQ(device.held(), 1u);
  EXPECT_EQ(asked_for_a_job, 0) << "the source chooses when nothing was asked for";
  device.finish();
  EXPECT_EQ(asked_for_a_job, 1);
}

TEST_F(DeviceSchedulerTest, TheNextJobIsChosenAfterWhatTheLastOneChanged) {
  scheduler->ask(WorkKind::kImage, note("x"), [this] {
    EXPECT_TRUE(scheduler->idle());
    own = {"chosen late"};
  });
  device.finish();
  device.finish();
  EXPECT_THAT(log, ElementsAre("x", "chosen late", "after chosen late"));
}

TEST_F(DeviceSchedulerTest, AfterStopNothingStartsAndNothingIsToldOfTheJobUnderWay) {
  own = {"b"};
  ask("x");
  ask("y");
  scheduler->stop();
  EXPECT_TRUE(scheduler->stopped());
  device.finish();
  EXPECT_THAT(log, ElementsAre("x"));
  EXPECT_EQ(device.held(), 0u);
  ask("z");
  scheduler->pump();
  EXPECT_EQ(device.held(), 0u);
}

TEST_F(DeviceSchedulerTest, AJobThatAsksToStopIsTheLast) {
  own = {"b"};
  scheduler->ask(WorkKind::kImage, note("x"), [this] { scheduler->stop(); });
  device.finish();
  EXPECT_EQ(device.held(), 0u);
}

TEST_F(DeviceSchedulerTest, AJobUnderWayOutlivesTheSessionWithItsExecutor) {
  ask("x");
  scheduler.reset();
  EXPECT_GT(executor.use_count(), 1) << "the job shares it";
  device.finish();
  EXPECT_THAT(log, ElementsAre("x"));
  EXPECT_EQ(executor.use_count(), 1);
}

TEST_F(DeviceSchedulerTest, WhatRoundsHeldTheDeviceIsAddedUp) {
  for (const WorkKind kind :
       {WorkKind::kForward, WorkKind::kSnapshot, WorkKind::kCommit, WorkKind::kShift, WorkKind::kWrite}) {
    scheduler->run(kind, note("job"), note_after("job"));
    clock.pass(10ms);
    device.finish();
  }
  EXPECT_EQ(scheduler->of_rounds(), 30ms);
}

}  // namespace
}  // namespace shoal
