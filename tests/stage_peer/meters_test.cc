#include "runtime/stage_peer/meters.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kStart{100s};

TEST(MetersTest, TheRateIsTakenOverWholePeriods) {
  Meters meters(64, 1000);
  meters.start(kStart);
  meters.measure(5, kStart + Meters::kRatePeriod - 1ms);
  EXPECT_EQ(meters.readings().rate, 0);
  meters.measure(10, kStart + Meters::kRatePeriod);
  EXPECT_DOUBLE_EQ(meters.readings().rate, 10 * 64 / 2.0);
}

TEST(MetersTest, TheRateForgetsWhatWasBefore) {
  Meters meters(64, 1000);
  meters.start(kStart);
  meters.measure(10, kStart + 2s);
  meters.measure(14, kStart + 6s);  // a late beat: over the time that passed
  EXPECT_DOUBLE_EQ(meters.readings().rate, 4 * 64 / 4.0);
  meters.measure(14, kStart + 8s);
  EXPECT_EQ(meters.readings().rate, 0);
}

TEST(MetersTest, BytesAreCountedOnlyForWhatWasEncoded) {
  Meters meters(64, 1000);
  meters.encoded(250);
  meters.encoded(0);
  meters.encoded(260);
  EXPECT_EQ(meters.readings().payload_bytes, 510u);
  EXPECT_EQ(meters.readings().fp32_bytes, 2000u);
}

TEST(MetersTest, TheTimesOfAMicrobatchAreAMeanOfTheLastOnes) {
  Meters meters(64, 1000);
  EXPECT_FALSE(meters.readings().forward_us.has_value());
  meters.computed(100, 300);
  EXPECT_EQ(meters.readings().forward_us, 100);
  for (int i = 0; i < 200; ++i) meters.computed(50, 200);
  EXPECT_NEAR(*meters.readings().forward_us, 50, 0.1);
  EXPECT_NEAR(*meters.readings().backward_us, 200, 0.1);
}

DelayHistogram late(std::uint64_t delay, std::uint64_t targets) {
  DelayHistogram histogram;
  histogram.add(delay, targets);
  return histogram;
}

TEST(MetersTest, TheDelayIsTheMeanOverTheTargetsOfTheLastWindows) {
  Meters meters(64, 1000);
  EXPECT_EQ(meters.readings().delay, 0);
  meters.stepped(late(0, 100));
  meters.stepped(late(2, 300));
  EXPECT_DOUBLE_EQ(meters.readings().delay, 1.5);
  meters.stepped({});  // a step in which this replica has no part
  EXPECT_DOUBLE_EQ(meters.readings().delay, 1.5);
  EXPECT_EQ(meters.readings().inner_steps, 3u);
  for (std::size_t i = 0; i < kDelayWindows; ++i) meters.stepped(late(3, 1));
  EXPECT_DOUBLE_EQ(meters.readings().delay, 3) << "older windows are forgotten";
}

TEST(MetersTest, WhatHappenedAddsUp) {
  Meters meters(64, 1000);
  meters.stepped({});
  meters.stepped({});
  meters.dropped_graphs(2);
  meters.dropped_graphs(3);
  EXPECT_EQ(meters.readings().inner_steps, 2u);
  EXPECT_EQ(meters.readings().graphs_dropped, 5u);
}

}  // namespace
}  // namespace shoal
