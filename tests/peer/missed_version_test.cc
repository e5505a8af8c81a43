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

TEST(MissedVersionTest, WhatIsHereIsNeitherLateNorFetchedUntilANewerOneIsCommitted) {
  MissedVersion missed(Version(4), digest(4), kStart, 10s);
  missed.arrived();
  EXPECT_FALSE(missed.to_fetch());
  EXPECT_FALSE(missed.too_late(kStart + 1000s));
  missed.aim(Version(4), digest(9), kStart + 1000s);
  EXPECT_FALSE(missed.to_fetch()) << "the same version again is no news";
  missed.aim(Version(5), digest(5), kStart + 1000s);
  EXPECT_TRUE(missed.to_fetch());
  EXPECT_EQ(missed.version(), Version(5));
  EXPECT_EQ(missed.digest(), digest(5));
  EXPECT_FALSE(missed.too_late(kStart + 1010s - 1ms));
  EXPECT_TRUE(missed.too_late(kStart + 1010s));
}

TEST(MissedVersionTest, OlderVersionsChangeNothing) {
  MissedVersion missed(Version(4), digest(4), kStart, 10s);
  missed.aim(Version(3), digest(3), kStart + 1s);
  EXPECT_EQ(missed.version(), Version(4));
  EXPECT_EQ(missed.digest(), digest(4));
}

TEST(MissedVersionTest, OnlyVersionsThatFlowedCanBeOvertakenAndThreeTimesIsAllowed) {
  MissedVersion missed(Version(1), digest(1), kStart, 10s);
  for (std::uint64_t v = 2; v < 20; ++v) missed.aim(Version(v), digest(2), kStart);
  EXPECT_FALSE(missed.overtaken_too_often()) << "nothing of them came yet";
  for (std::uint64_t v = 20; v < 23; ++v) {
    missed.flows(kStart);
    missed.aim(Version(v), digest(3), kStart);
  }
  EXPECT_FALSE(missed.overtaken_too_often());
  missed.flows(kStart);
  missed.aim(Version(23), digest(4), kStart);
  EXPECT_TRUE(missed.overtaken_too_often());
}

TEST(MissedVersionTest, AnotherVersionGivesNoTimeUnlessSomethingCame) {
  MissedVersion missed(Version(1), digest(1), kStart, 10s);
  missed.aim(Version(2), digest(2), kStart + 9s);
  EXPECT_TRUE(missed.too_late(kStart + 10s)) << "commits alone are no progress of ours";
}

}  // namespace
}  // namespace shoal
