#include "runtime/peer/leaving.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kStart = TimePoint{} + 100s;

TEST(LeavingTest, AsksWhenAllIsQuiet) {
  Leaving leaving;
  EXPECT_FALSE(leaving.wanted());
  leaving.begin(kStart);
  EXPECT_TRUE(leaving.wanted());
  EXPECT_FALSE(leaving.next(kStart + 1s, {.quiet = false}).ask);
  const Leaving::Step step = leaving.next(kStart + 2s, {.quiet = true});
  EXPECT_TRUE(step.ask);
  EXPECT_FALSE(step.give_up);
  EXPECT_FALSE(leaving.next(kStart + 3s, {.quiet = true, .asked = true}).ask);
}

TEST(LeavingTest, AsksInTheLastThirdOfItsTimeHoweverMuchIsOpenAndThenGivesUp) {
  Leaving leaving;
  leaving.begin(kStart);
  EXPECT_FALSE(leaving.next(kStart + 20s - 1ms, {}).ask);
  EXPECT_TRUE(leaving.next(kStart + 20s, {}).ask);
  EXPECT_FALSE(leaving.next(kStart + 30s - 1ms, {.asked = true}).give_up);
  EXPECT_TRUE(leaving.next(kStart + 30s, {.asked = true}).give_up);
}

TEST(LeavingTest, TheLastHolderWaitsForAnotherAndSaysSoOnceEachTime) {
  Leaving leaving;
  leaving.begin(kStart);
  const Leaving::Facts last{.last_holder = true, .quiet = true};
  EXPECT_TRUE(leaving.next(kStart + 1s, last).tell_last);
  const Leaving::Step later = leaving.next(kStart + 1000s, last);
  EXPECT_FALSE(later.tell_last || later.ask || later.give_up);
  const Leaving::Step handed = leaving.next(kStart + 1001s, {.quiet = true});
  EXPECT_TRUE(handed.ask);
  EXPECT_FALSE(handed.give_up) << "the time begins when another holds the state";
  EXPECT_TRUE(leaving.next(kStart + 1002s, last).tell_last) << "the other one went";
  EXPECT_FALSE(leaving.next(kStart + 1032s - 1ms, {.asked = true}).give_up);
  EXPECT_TRUE(leaving.next(kStart + 1032s, {.asked = true}).give_up);
}

}  // namespace
}  // namespace shoal
