#include <gtest/gtest.h>

#include "runtime/peer/announcing.h"

namespace shoal {
namespace {

TEST(AnnouncePaceTest, TellsTheFirstOfEachNewsAtOnceAndLaterOnesAfterAPause) {
  AnnouncePace pace;
  TimePoint now{};
  EXPECT_TRUE(pace.due(now, Version(0), 0)) << "nothing was told";
  pace.told(now, Version(0), 0);
  EXPECT_FALSE(pace.due(now + 1s, Version(0), 0));
  EXPECT_TRUE(pace.due(now + 1s, Version(0), 80.0)) << "the first rate";
  pace.told(now += 1s, Version(0), 80.0);
  EXPECT_FALSE(pace.due(now + 1s, Version(0), 160.0)) << "another rate is no news";
  EXPECT_TRUE(pace.due(now + 100ms, Version(1), 160.0)) << "the first version";
  pace.told(now += 100ms, Version(1), 160.0);
  EXPECT_FALSE(pace.due(now + AnnouncePace::kPause - 1ms, Version(2), 160.0));
  EXPECT_TRUE(pace.due(now + AnnouncePace::kPause, Version(2), 160.0));
  pace.told(now += AnnouncePace::kPause, Version(2), 0);
  EXPECT_FALSE(pace.due(now + AnnouncePace::kPause - 1ms, Version(2), 160.0)) << "it had a rate before";
  EXPECT_FALSE(pace.due(now + AnnouncePace::kPeriod - 1ms, Version(2), 0));
  EXPECT_TRUE(pace.due(now + AnnouncePace::kPeriod, Version(2), 0));
}

TEST(AnnouncePaceTest, TheVersionThatASessionBeginsWithIsNoNews) {
  AnnouncePace pace;
  pace.told(TimePoint{}, Version(7), 0);
  EXPECT_FALSE(pace.due(TimePoint{} + 1s, Version(7), 0));
  EXPECT_TRUE(pace.due(TimePoint{} + 1s, Version(8), 0));
}

}  // namespace
}  // namespace shoal
