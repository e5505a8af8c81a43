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

TEST(LeavingTest, APauseAsksSoonAndGoesWithinItsTimeWhateverIsOpenAndWhoeverElseHoldsTheState) {
  for (const bool last_holder : {false, true}) {
    Leaving leaving;
    leaving.begin_move(kStart, StageId(1));
    leaving.begin_pause(kStart);
    EXPECT_TRUE(leaving.pauses());
    EXPECT_FALSE(leaving.for_good());
    EXPECT_EQ(leaving.to(), std::nullopt) << "the stage that it was to move to is forgotten";
    const Leaving::Facts facts{.last_holder = last_holder, .held_up = true};
    EXPECT_EQ(leaving.next(kStart, facts).tell_last, last_holder);
    EXPECT_FALSE(leaving.next(kStart + 500ms - 1ms, facts).ask);
    EXPECT_TRUE(leaving.next(kStart + 500ms, facts).ask);
    EXPECT_FALSE(leaving.next(kStart + 1500ms - 1ms, facts).give_up);
    EXPECT_TRUE(leaving.next(kStart + 1500ms, facts).give_up);
  }
}

TEST(LeavingTest, APauseAsksAtOnceWhenAllIsQuietAndMayBecomeAnEnd) {
  Leaving leaving;
  leaving.begin_pause(kStart);
  EXPECT_TRUE(leaving.next(kStart, {.quiet = true}).ask);
  leaving.go_for_good(kStart + 1s);
  EXPECT_FALSE(leaving.pauses());
  EXPECT_TRUE(leaving.for_good());
  EXPECT_FALSE(leaving.next(kStart + 31s - 1ms, {.asked = true}).give_up);
}

}  // namespace
}  // namespace shoal
