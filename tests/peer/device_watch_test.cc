// A device's present job, by the time in which it could work.
#include "runtime/peer/device_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "sim/sim_loop.h"

namespace shoal {
namespace {

// Runs nothing by itself, and counts how often it is asked what its jobs starved.
class HeldDevice final : public WorkQueue {
 public:
  void run(WorkKind, std::function<void()>, std::function<void()> done) override { done_ = std::move(done); }
  Duration starved() override {
    ++asked;
    return starved_for;
  }
  void end_job() { std::exchange(done_, {})(); }
  int asked = 0;
  Duration starved_for{};

 private:
  std::function<void()> done_;
};

TEST(DeviceWatchTest, WhatAJobStarvesIsNoAgeOfIt) {
  SimLoop loop;
  HeldDevice device;
  DeviceWatch watch(device, loop);
  watch.run(
      WorkKind::kForward, [] {}, [] {});
  loop.run_for(10s);
  device.starved_for = 7s;
  EXPECT_EQ(watch.busy_for(), Duration(3s));
  EXPECT_EQ(watch.starved_for(), Duration(7s));
  device.end_job();
  EXPECT_EQ(watch.longest(), Duration(3s));
}

// The callback of a job may come when its peer is gone, and with it the device.
TEST(DeviceWatchTest, AJobThatEndsAfterTheWatchAsksNothingOfItsDevice) {
  SimLoop loop;
  HeldDevice device;
  bool told = false;
  auto watch = std::make_unique<DeviceWatch>(device, loop);
  watch->run(
      WorkKind::kForward, [] {}, [&told] { told = true; });
  watch.reset();
  const int asked = device.asked;
  device.end_job();
  EXPECT_TRUE(told);
  EXPECT_EQ(device.asked, asked);
}

}  // namespace
}  // namespace shoal
