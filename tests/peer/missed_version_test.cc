#include "runtime/peer/missed_version.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kStart = TimePoint{} + 100s;

Digest digest(std::uint8_t n) {
  Digest d;
  d.bytes[0] = n;
  return d;
}

TEST(MissedVersionTest, IsTooLateWithoutAChunkAndEveryChunkGivesTimeAnew) {
  MissedVersion missed(Version(4), digest(4), kStart, 10s);
  EXPECT_FALSE(missed.too_late(kStart + 10s - 1ms));
  EXPECT_TRUE(missed.too_late(kStart + 10s));
  missed.flows(kStart + 9s);
  EXPECT_FALSE(missed.too_late(kStart + 19s - 1ms));
  EXPECT_TRUE(missed.too_late(kStart + 19s));
}

TEST(MissedVersionTest, WhatIsHereIsTakenOverBeforeANewerOneIsFetched) {
  MissedVersion missed(Version(4), digest(4), kStart, 10s);
  missed.arrived();
  EXPECT_FALSE(missed.to_fetch());
  EXPECT_FALSE(missed.too_late(kStart + 1000s));
  missed.aim(Version(4), digest(9));
  EXPECT_FALSE(missed.go_on(kStart + 1000s)) << "the same version again is no news";
  missed.aim(Version(5), digest(5));
  EXPECT_FALSE(missed.to_fetch());
  EXPECT_EQ(missed.version(), Version(4));
  ASSERT_TRUE(missed.go_on(kStart + 1000s));
  EXPECT_TRUE(missed.to_fetch());
  EXPECT_EQ(missed.version(), Version(5));
  EXPECT_EQ(missed.digest(), digest(5));
  EXPECT_FALSE(missed.too_late(kStart + 1010s - 1ms));
  EXPECT_TRUE(missed.too_late(kStart + 1010s));
}

TEST(MissedVersionTest, OlderVersionsChangeNothing) {
  MissedVersion missed(Version(4), digest(4), kStart, 10s);
  missed.aim(Version(3), digest(3));
  EXPECT_EQ(missed.version(), Version(4));
  EXPECT_EQ(missed.digest(), digest(4));
}

// The round that was open when the next ones were held.
TEST(MissedVersionTest, TheFetchBehindAnOvertakenOneTurnsOnceWhileTheLesserPartIsHere) {
  MissedVersion missed(Version(4), digest(4), kStart, 10s);
  missed.flows(kStart, 0.1);
  missed.aim(Version(5), digest(5));
  EXPECT_EQ(missed.version(), Version(4)) << "rounds are not held for a first fetch";
  missed.arrived();
  ASSERT_TRUE(missed.go_on(kStart + 1s));
  missed.flows(kStart + 2s, 0.1);
  missed.aim(Version(6), digest(6));
  EXPECT_EQ(missed.version(), Version(6));
  missed.flows(kStart + 3s, 0.1);
  missed.aim(Version(7), digest(7));
  EXPECT_EQ(missed.version(), Version(6)) << "once";
  missed.arrived();
  ASSERT_TRUE(missed.go_on(kStart + 4s));
  missed.flows(kStart + 5s, 0.5);
  missed.aim(Version(8), digest(8));
  EXPECT_EQ(missed.version(), Version(7)) << "half of it is here";
}

TEST(MissedVersionTest, WhatComesIsFetchedToItsEndThoughNewerOnesAreCommitted) {
  MissedVersion missed(Version(4), digest(4), kStart, 10s);
  missed.aim(Version(5), digest(5));
  EXPECT_EQ(missed.version(), Version(5)) << "nothing of 4 had come";
  missed.flows(kStart + 1s);
  missed.aim(Version(6), digest(6));
  missed.aim(Version(7), digest(7));
  EXPECT_EQ(missed.version(), Version(5));
  EXPECT_EQ(missed.newest(), Version(7));
  missed.arrived();
  ASSERT_TRUE(missed.go_on(kStart + 2s));
  EXPECT_EQ(missed.version(), Version(7));
  EXPECT_EQ(missed.digest(), digest(7));
  missed.arrived();
  EXPECT_FALSE(missed.go_on(kStart + 3s));
}

TEST(MissedVersionTest, WhileADonorMakesTheImageItIsWaitedForWithinABound) {
  MissedVersion missed(Version(1), digest(1), kStart, 10s);
  for (Duration at = 9s; at < MissedVersion::kMakingMax; at += 9s) {
    ASSERT_FALSE(missed.too_late(kStart + at));
    missed.is_made(kStart + at);
  }
  const TimePoint bound = kStart + MissedVersion::kMakingMax;
  missed.is_made(bound);
  EXPECT_TRUE(missed.too_late(bound + 10s));
  missed.arrived();
  missed.is_made(bound);
  EXPECT_FALSE(missed.to_fetch()) << "what is here is not waited for again";
}

TEST(MissedVersionTest, ThreeFetchesMayBeOvertaken) {
  MissedVersion missed(Version(1), digest(1), kStart, 10s);
  for (std::uint64_t v = 2; v < 20; ++v) missed.aim(Version(v), digest(2));
  EXPECT_FALSE(missed.overtaken_too_often()) << "nothing of them came yet";
  for (std::uint64_t v = 20; v < 24; ++v) {
    EXPECT_FALSE(missed.overtaken_too_often());
    missed.flows(kStart);
    missed.aim(Version(v), digest(3));
    missed.arrived();
    ASSERT_TRUE(missed.go_on(kStart));
  }
  EXPECT_TRUE(missed.overtaken_too_often());
}

TEST(MissedVersionTest, WhenNothingMoreComesOfAnOlderVersionItTurnsToTheNewestOnce) {
  MissedVersion missed(Version(1), digest(1), kStart, 10s);
  missed.flows(kStart + 1s);
  missed.aim(Version(2), digest(2));
  EXPECT_TRUE(missed.too_late(kStart + 11s));
  ASSERT_TRUE(missed.turn(kStart + 11s));
  EXPECT_EQ(missed.version(), Version(2));
  EXPECT_FALSE(missed.too_late(kStart + 21s - 1ms));
  missed.aim(Version(3), digest(3));
  EXPECT_TRUE(missed.too_late(kStart + 21s));
  EXPECT_FALSE(missed.turn(kStart + 21s)) << "nothing of 2 came";
}

TEST(MissedVersionTest, AnotherVersionGivesNoTimeUnlessSomethingCame) {
  MissedVersion missed(Version(1), digest(1), kStart, 10s);
  missed.aim(Version(2), digest(2));
  EXPECT_EQ(missed.version(), Version(2));
  EXPECT_TRUE(missed.too_late(kStart + 10s)) << "commits alone are no progress of ours";
}

}  // namespace
}  // namespace shoal
