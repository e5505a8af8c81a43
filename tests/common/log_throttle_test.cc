#include "common/log_throttle.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(LogThrottleTest, SaysAThingAtOnceAndThenOnceAnIntervalWithTheCount) {
  LogThrottle throttle;
  TimePoint now{};
  EXPECT_EQ(throttle.due("a", now), 1u);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(throttle.due("a", now += 1s), std::nullopt);
  EXPECT_EQ(throttle.due("b", now), 1u) << "another cause has its own line";
  EXPECT_EQ(throttle.due("a", now += LogThrottle::kInterval), 7u);
  EXPECT_EQ(throttle.due("a", now), std::nullopt);
  EXPECT_EQ(LogThrottle::text_of(1), "");
  EXPECT_NE(LogThrottle::text_of(7).find("7 times"), std::string::npos);
}

TEST(LogThrottleTest, WhoInventsCausesGetsOneLineForAllOfThem) {
  LogThrottle throttle;
  TimePoint now{};
  std::uint64_t lines = 0, told = 0;
  for (int i = 0; i < 10'000; ++i)
    if (const auto times = throttle.due("cause " + std::to_string(i), now)) ++lines, told += *times;
  EXPECT_LE(lines, LogThrottle::kCausesMax + 1);
  now += LogThrottle::kInterval;
  // Those that are over make room.
  EXPECT_EQ(throttle.due("new", now), 1u);
  EXPECT_GE(told, lines);
}

}  // namespace
}  // namespace shoal
