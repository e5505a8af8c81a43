#include "transport/rate_meter.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

// `count` chunks of 256 KiB given to the wire at once, each acknowledged after its time on the line and half a round
// trip back.
void spell(RateMeter& meter, TimePoint& now, int count, double rate, Duration rtt) {
  constexpr std::uint64_t kChunk = 256u << 10;
  for (int i = 0; i < count; ++i) meter.on_sent(now, kChunk);
  const TimePoint start = now;
  for (int i = 1; i <= count; ++i) {
    now = start + rtt + from_seconds(static_cast<double>(kChunk) * i / rate);
    meter.on_delivered(now, kChunk, rtt);
  }
}

TEST(RateMeterTest, FindsTheRateOfLongAndShortTransfersWithoutTheRoundTrip) {
  for (const double rate : {1.25e6, 12.5e6, 500e6}) {
    for (const int chunks : {1, 2, 16}) {
      for (const Duration rtt : {1ms, 40ms, 300ms}) {
        RateMeter meter;
        TimePoint now(1s);
        for (int i = 0; i < 30; ++i) {
          spell(meter, now, chunks, rate, rtt);
          now += 1s;  // idle time is not slowness
        }
        if (meter.bytes_per_second() == 0) {
          EXPECT_GT(rate, 100e6) << "only samples too short to measure may be left out";
          continue;
        }
        EXPECT_NEAR(meter.bytes_per_second() / rate, 1, 0.05)
            << "rate " << rate << ", " << chunks << " chunks, rtt " << rtt / 1ms;
        EXPECT_EQ(meter.in_flight(), 0u);
      }
    }
  }
}

TEST(RateMeterTest, FollowsAChange) {
  RateMeter meter;
  TimePoint now(1s);
  for (int i = 0; i < 20; ++i) spell(meter, now, 16, 100e6, 10ms);
  for (int i = 0; i < 4; ++i) spell(meter, now, 16, 5e6, 10ms);
  EXPECT_LT(meter.bytes_per_second(), 10e6);
}

TEST(RateMeterTest, MoreDeliveredThanSentDoesNotWrap) {
  RateMeter meter;
  meter.on_sent(TimePoint(1s), kMiB);
  meter.on_delivered(TimePoint(2s), 5 * kMiB, 10ms);
  EXPECT_EQ(meter.in_flight(), 0u);
}

}  // namespace
}  // namespace shoal
