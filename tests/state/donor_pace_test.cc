#include "state/donor_pace.h"

#include <gtest/gtest.h>

#include <deque>

namespace shoal {
namespace {

constexpr std::uint64_t kChunk = 1u << 20;

// A line that carries `rate` bytes a second with `rtt`, and always has the window's chunks in flight.
class Line {
 public:
  Line(double rate, Duration rtt) : rate_(rate), rtt_(rtt) {}
  void carry(DonorPace& pace, int chunks) {
    for (; chunks > 0; --chunks) {
      while (asked_.size() < pace.window()) asked_.push_back(now_);
      const TimePoint asked = asked_.front();
      asked_.pop_front();
      busy_until_ = std::max(busy_until_, asked + rtt_) + from_seconds(static_cast<double>(kChunk) / rate_);
      now_ = busy_until_;
      pace.came(kChunk, asked, now_);
    }
  }
  TimePoint now() const { return now_; }

 private:
  double rate_;
  Duration rtt_;
  TimePoint now_ = TimePoint{} + 100s, busy_until_{};
  std::deque<TimePoint> asked_;
};

TEST(DonorPaceTest, BeginsWithTheLeast) {
  EXPECT_EQ(DonorPace().window(), DonorPace::kWindowMin);
  EXPECT_EQ(DonorPace().time_for(kChunk), Duration(0));
}

TEST(DonorPaceTest, TheWindowGrowsUntilALongFastLineIsFull) {
  DonorPace pace;
  Line line(125e6, 100ms);  // 12 chunks in a round trip
  line.carry(pace, 100);
  const TimePoint begun = line.now();
  line.carry(pace, 200);
  EXPECT_GE(pace.window(), 12u);
  EXPECT_LE(pace.window(), 40u);
  EXPECT_GE(200 * static_cast<double>(kChunk) / seconds_of(line.now() - begun), 0.95 * 125e6);
  EXPECT_NEAR(pace.bytes_per_second(), 125e6, 10e6);
}

TEST(DonorPaceTest, ASlowLineKeepsFew) {
  DonorPace pace;
  Line line(125e3, 40ms);  // a chunk takes eight seconds
  line.carry(pace, 10);
  EXPECT_LE(pace.window(), 3u);
  EXPECT_NEAR(seconds_of(pace.time_for(kChunk)), 8.4, 0.3);
}

TEST(DonorPaceTest, NoLineHasMoreThanTheBound) {
  DonorPace pace;
  Line line(1e10, 1s);
  line.carry(pace, 2000);
  EXPECT_EQ(pace.window(), DonorPace::kWindowMax);
}

}  // namespace
}  // namespace shoal
