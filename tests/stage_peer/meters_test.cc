#include "runtime/stage_peer/meters.h"

#include <gtest/gtest.h>

#include "transport/limits.h"

namespace shoal {
namespace {

constexpr TimePoint kStart{100s};

TEST(MetersTest, TheRateIsThatOfTheWindow) {
  Meters meters(64, 1000);
  meters.start(kStart);
  EXPECT_EQ(meters.figures({}).rate, 0);
  for (std::uint64_t second = 1; second <= 30; ++second)
    meters.measure({.counted = 5 * second}, kStart + std::chrono::seconds(second));
  EXPECT_NEAR(meters.figures({}).rate, 5 * 64, 1e-9);
  for (std::uint64_t second = 31; second <= 60; ++second)
    meters.measure({.counted = 150 + 4 * (second - 30)}, kStart + std::chrono::seconds(second));
  EXPECT_NEAR(meters.figures({}).rate, 4 * 64, 1e-9) << "what was before is forgotten";
}

// One that works was told to have no rate between any two microbatches that are further apart than its window.
TEST(MetersTest, TheRateIsNeverZeroWhileWorkIsCounted) {
  Meters meters(512, 1000);
  meters.start(kStart);
  for (std::uint64_t second = 5; second <= 120; second += 5) {
    meters.measure({.counted = second / 30}, kStart + std::chrono::seconds(second));  // one microbatch in 30 s
    EXPECT_EQ(meters.figures({}).rate > 0, second >= 30) << second;
  }
}

TEST(MetersTest, TheFiguresHaveWhatTheLedgerCounts) {
  const PeerFigures figures = Meters(64, 1000).figures({.accepted = 5, .counted = 4, .undone = 3, .recomputed = 2});
  EXPECT_EQ(figures.accepted, 5u);
  EXPECT_EQ(figures.accepted_targets, 5u * 64);
  EXPECT_EQ(figures.counted, 4u);
  EXPECT_EQ(figures.undone, 3u);
  EXPECT_EQ(figures.recomputed, 2u);
}

TEST(MetersTest, BytesAreCountedOnlyForWhatWasEncoded) {
  Meters meters(64, 1000);
  meters.encoded(250);
  meters.encoded(0);
  meters.encoded(260);
  EXPECT_EQ(meters.figures({}).payload_bytes, 510u);
  EXPECT_EQ(meters.figures({}).fp32_bytes, 2000u);
}

TEST(MetersTest, TheTimesOfAMicrobatchAreAMeanOfTheLastOnes) {
  Meters meters(64, 1000);
  EXPECT_FALSE(meters.figures({}).forward_us.has_value());
  meters.computed(100, 300);
  EXPECT_EQ(meters.figures({}).forward_us, 100);
  for (int i = 0; i < 200; ++i) meters.computed(50, 200);
  EXPECT_NEAR(*meters.figures({}).forward_us, 50, 0.1);
  EXPECT_NEAR(*meters.figures({}).backward_us, 200, 0.1);
}

DelayHistogram late(std::uint64_t delay, std::uint64_t targets) {
  DelayHistogram histogram;
  histogram.add(delay, targets);
  return histogram;
}

TEST(MetersTest, TheDelayIsTheMeanOverTheTargetsOfTheLastWindows) {
  Meters meters(64, 1000);
  EXPECT_EQ(meters.figures({}).delay, 0);
  meters.stepped(late(0, 100));
  meters.stepped(late(2, 300));
  EXPECT_DOUBLE_EQ(meters.figures({}).delay, 1.5);
  meters.stepped({});  // a step in which this replica has no part
  EXPECT_DOUBLE_EQ(meters.figures({}).delay, 1.5);
  EXPECT_EQ(meters.figures({}).inner_steps, 3u);
  for (std::size_t i = 0; i < kDelayWindows; ++i) meters.stepped(late(3, 1));
  EXPECT_DOUBLE_EQ(meters.figures({}).delay, 3) << "older windows are forgotten";
}

TEST(MetersTest, AMicrobatchIsRefusedUntilAPassOfItIsCountedOrItIsDecided) {
  Meters meters(64, 1000);
  meters.refused(7, RefusalCause::kActivation);
  meters.refused(7, RefusalCause::kGradient);
  meters.refused(3, RefusalCause::kLoss);
  meters.refused(9, RefusalCause::kMemory);
  meters.passed(9);
  const auto all = meters.refused(0);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].serial, 3u) << "lowest first";
  EXPECT_EQ(all[1].serial, 7u);
  EXPECT_EQ(all[1].times, 2u);
  EXPECT_EQ(all[1].cause, RefusalCause::kGradient) << "the newest";
  EXPECT_EQ(meters.refused(4).size(), 1u) << "below the low-water mark all is decided";
  for (std::uint64_t serial = 10; serial < 1000; ++serial) meters.refused(serial, RefusalCause::kOther);
  const auto most = meters.refused(0);
  ASSERT_EQ(most.size(), limits::kRefusedMax);
  EXPECT_EQ(most.front().serial, 7u) << "the lowest stay";
}

TEST(MetersTest, WhatHappenedAddsUp) {
  Meters meters(64, 1000);
  meters.stepped({});
  meters.stepped({});
  meters.dropped_graphs(2);
  meters.dropped_graphs(3);
  EXPECT_EQ(meters.figures({}).inner_steps, 2u);
  EXPECT_EQ(meters.figures({}).graphs_dropped, 5u);
}

}  // namespace
}  // namespace shoal
