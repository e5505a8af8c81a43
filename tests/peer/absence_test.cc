#include "runtime/peer/absence.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kStart = TimePoint{} + 100s;
constexpr AbsencePhase kAll[] = {AbsencePhase::kHere,    AbsencePhase::kLeaving, AbsencePhase::kMoving,
                                 AbsencePhase::kPausing, AbsencePhase::kEnding,  AbsencePhase::kPaused};

TEST(AbsenceTest, AsksWhenAllIsQuiet) {
  Absence absence;
  EXPECT_FALSE(absence.goes());
  absence.leave(kStart);
  EXPECT_TRUE(absence.goes());
  EXPECT_FALSE(absence.next(kStart + 1s, {.quiet = false}).ask);
  const Absence::Step step = absence.next(kStart + 2s, {.quiet = true});
  EXPECT_TRUE(step.ask);
  EXPECT_FALSE(step.give_up);
  EXPECT_FALSE(absence.next(kStart + 3s, {.quiet = true, .asked = true}).ask);
}

TEST(AbsenceTest, AsksInTheLastThirdOfItsTimeHoweverMuchIsOpenAndThenGivesUp) {
  Absence absence;
  absence.leave(kStart);
  EXPECT_FALSE(absence.next(kStart + 20s - 1ms, {}).ask);
  EXPECT_TRUE(absence.next(kStart + 20s, {}).ask);
  EXPECT_FALSE(absence.next(kStart + 30s - 1ms, {.asked = true}).give_up);
  EXPECT_TRUE(absence.next(kStart + 30s, {.asked = true}).give_up);
}

TEST(AbsenceTest, TheLastHolderWaitsForAnotherAndSaysSoOnceEachTime) {
  Absence absence;
  absence.leave(kStart);
  const Absence::Facts last{.last_holder = true, .quiet = true};
  EXPECT_TRUE(absence.next(kStart + 1s, last).tell_last);
  const Absence::Step later = absence.next(kStart + 1000s, last);
  EXPECT_FALSE(later.tell_last || later.ask || later.give_up);
  const Absence::Step handed = absence.next(kStart + 1001s, {.quiet = true});
  EXPECT_TRUE(handed.ask);
  EXPECT_FALSE(handed.give_up) << "the time begins when another holds the state";
  EXPECT_TRUE(absence.next(kStart + 1002s, last).tell_last) << "the other one went";
  EXPECT_FALSE(absence.next(kStart + 1032s - 1ms, {.asked = true}).give_up);
  EXPECT_TRUE(absence.next(kStart + 1032s, {.asked = true}).give_up);
}

TEST(AbsenceTest, TheLastHolderGoesOnceItsStateIsOnTheDiskAndNobodyTookIt) {
  const Absence::Facts open{.last_holder = true}, written{.last_holder = true, .on_disk = true};
  Absence absence;
  absence.leave(kStart);
  EXPECT_TRUE(absence.next(kStart, open).tell_last);
  EXPECT_FALSE(absence.next(kStart + 25s, open).give_up) << "what would be lost is waited for";
  EXPECT_FALSE(absence.next(kStart + 20s - 1ms, written).give_up);
  EXPECT_TRUE(absence.next(kStart + 20s, written).give_up);
  EXPECT_NE(absence.give_up().find("on the disk"), std::string::npos) << absence.give_up();

  Absence alone;
  alone.leave(kStart);
  EXPECT_FALSE(alone.next(kStart, {.last_holder = true, .away = true}).give_up);
  EXPECT_TRUE(alone.next(kStart, {.last_holder = true, .away = true, .on_disk = true}).give_up)
      << "nobody will take it";

  Absence twice;
  twice.leave(kStart);
  EXPECT_FALSE(twice.leave_at_once(true)) << "the first time it is still written";
  EXPECT_FALSE(twice.next(kStart + 1s, open).give_up);
  EXPECT_TRUE(twice.next(kStart + 2s, written).give_up);
  EXPECT_TRUE(twice.leave_at_once(true));
  EXPECT_TRUE(Absence().leave_at_once(false));
}

TEST(AbsenceTest, APauseAsksSoonAndGoesWithinItsTimeWhateverIsOpenAndWhoeverElseHoldsTheState) {
  for (const bool last_holder : {false, true}) {
    Absence absence;
    absence.move(kStart, StageId(1));
    EXPECT_TRUE(absence.begin_pause(kStart, "by its owner", true));
    EXPECT_TRUE(absence.is(AbsencePhase::kPausing));
    const Absence::Facts facts{.last_holder = last_holder, .held_up = true};
    EXPECT_EQ(absence.next(kStart, facts).tell_last, last_holder);
    EXPECT_FALSE(absence.next(kStart + 500ms - 1ms, facts).ask);
    EXPECT_TRUE(absence.next(kStart + 500ms, facts).ask);
    EXPECT_FALSE(absence.next(kStart + 1500ms - 1ms, facts).give_up);
    EXPECT_TRUE(absence.next(kStart + 1500ms, facts).give_up);
    EXPECT_EQ(absence.give_up(), "paused before a round secured what is here: by its owner");
    EXPECT_EQ(absence.wish(), std::nullopt) << "the stage that it was to move to is forgotten";
    EXPECT_EQ(absence.pause()->last_holder, last_holder);
    absence.session_over(12);
    EXPECT_EQ(absence.pause()->lost, 12u);
  }
}

TEST(AbsenceTest, APauseAsksAtOnceWhenAllIsQuietAndMayBecomeAnEnd) {
  Absence absence;
  absence.begin_pause(kStart, "by its owner", true);
  EXPECT_TRUE(absence.next(kStart, {.quiet = true}).ask);
  absence.leave(kStart + 1s);
  EXPECT_TRUE(absence.is(AbsencePhase::kLeaving));
  EXPECT_EQ(absence.pause(), std::nullopt);
  EXPECT_FALSE(absence.next(kStart + 31s - 1ms, {.asked = true}).give_up);
}

TEST(AbsenceTest, APauseThatIsResumedBeforeItsSessionIsDownIsOverWhenItIs) {
  Absence absence;
  EXPECT_FALSE(absence.resume()) << "it was not paused";
  EXPECT_TRUE(absence.begin_pause(kStart, "by its owner", true));
  EXPECT_FALSE(absence.resume());
  EXPECT_FALSE(absence.begin_pause(kStart + 1ms, "outside 22-8", true)) << "wanted again, for another reason";
  EXPECT_EQ(absence.let_go(), "paused: outside 22-8");
  absence.session_over(12);
  EXPECT_EQ(absence.pause()->lost, 0u) << "in order";
  EXPECT_FALSE(absence.resume());
  EXPECT_TRUE(absence.session_down());
  EXPECT_TRUE(absence.resume());
  EXPECT_TRUE(absence.is(AbsencePhase::kHere));
}

TEST(AbsenceTest, APauseTookFromTheWishUntilTheDeviceWasFreeAndNotAnEarlierOnes) {
  Absence absence;
  absence.begin_pause(kStart, "by its owner", false);
  absence.session_over(0);
  EXPECT_FALSE(absence.session_down());
  EXPECT_TRUE(absence.resume());
  absence.begin_pause(kStart + 1s, "by its owner", false);
  EXPECT_TRUE(absence.pause()->in_order) << "nothing was counted";
  absence.session_over(0);
  absence.session_down();
  EXPECT_FALSE(absence.freed(kStart, kStart + 2s));
  EXPECT_TRUE(absence.freed(absence.since(), kStart + 3s));
  EXPECT_EQ(absence.pause()->took, 2s);
}

TEST(AbsenceTest, AMoverAsksForItsStageOnceAndGoesBackWhereItCannotServe) {
  Absence absence;
  absence.move(kStart, StageId(1));
  absence.session_over(0);
  EXPECT_EQ(absence.wish(), std::nullopt) << "its session was over before it was let go";
  absence.move(kStart, StageId(1));
  EXPECT_EQ(absence.let_go(), "it moves");
  absence.session_over(0);
  EXPECT_EQ(absence.wish(), StageId(1));
  absence.joined(StageId(1), StageId(0));
  EXPECT_EQ(absence.wish(), std::nullopt);
  absence.cannot_serve(StageId(1));
  EXPECT_EQ(absence.go_back(), StageId(0));
  EXPECT_EQ(absence.wish(), StageId(0));
  absence.joined(StageId(0), StageId(1));
  EXPECT_FALSE(absence.may_move(StageId(1)));
  EXPECT_TRUE(absence.may_move(StageId(2)));
}

TEST(AbsenceTest, WhatLeavesForGoodDoesNothingElseAndAPauseEndsBeforeAnythingFollows) {
  for (const auto from : kAll) {
    EXPECT_FALSE(may_follow(from, from)) << name_of(from);
    EXPECT_FALSE(may_follow(AbsencePhase::kLeaving, from)) << name_of(from);
    EXPECT_EQ(may_follow(from, AbsencePhase::kPaused), from == AbsencePhase::kEnding) << name_of(from);
    EXPECT_EQ(may_follow(AbsencePhase::kPaused, from), from == AbsencePhase::kHere) << name_of(from);
  }
}

TEST(AbsenceDeathTest, AMoveThatIsNotInTheTableStopsTheProcess) {
  Absence absence;
  EXPECT_DEATH(absence.session_down(), "here and paused");
}

}  // namespace
}  // namespace shoal
