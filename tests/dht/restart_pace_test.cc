#include "dht/restart_pace.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

// The share of ten minutes in which no child lives, when a datagram comes every `period` and ends whoever lives.
double away_share(Duration period) {
  constexpr Duration kStart = 200ms, kSpan = 600s;
  RestartPace pace(500ms, 10s);
  Duration now{0}, up{0};
  while (now < kSpan) {
    const Duration born = now + kStart;
    const Duration killed = (born / period + 1) * period;
    up += killed - born;
    now = killed + pace.after(killed - born);
  }
  return 1 - seconds_of(up) / seconds_of(now);
}

TEST(RestartPaceTest, OneDatagramNowAndThenKeepsNobodyAwayForLong) {
  EXPECT_LT(away_share(2s), 0.5);
  EXPECT_LT(away_share(5s), 0.2);
  EXPECT_LT(away_share(10s), 0.1);
  EXPECT_LT(away_share(30s), 0.03);
}

TEST(RestartPaceTest, ChildrenThatDieAtOnceAreStartedLessAndLessOften) {
  RestartPace pace(500ms, 10s);
  Duration last{0};
  for (int i = 0; i < 8; ++i) {
    const Duration pause = pace.after(10ms);
    EXPECT_GE(pause, last);
    last = pause;
  }
  EXPECT_EQ(last, Duration(10s));
  EXPECT_TRUE(pace.hunted());
}

TEST(RestartPaceTest, AfterAQuietTimeTheNextPauseIsTheShortest) {
  RestartPace pace(500ms, 10s);
  for (int i = 0; i < 8; ++i) (void)pace.after(10ms);
  EXPECT_EQ(pace.after(60s), Duration(500ms));
  EXPECT_FALSE(pace.hunted());
}

}  // namespace
}  // namespace shoal
