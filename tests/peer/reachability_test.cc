#include "runtime/peer/reachability.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kStart = TimePoint{} + 100s;

Reachability patient() { return Reachability({.first = 60s, .returning = 3600s}); }

TEST(ReachabilityTest, TheSameIsToldOnceAndAnythingElseAtOnce) {
  Reachability reach = patient();
  const auto first = reach.undialled(kStart, "a:1 refused");
  ASSERT_TRUE(first.has_value());
  EXPECT_NE(first->find("a:1 refused; not admitted"), std::string::npos) << *first;
  EXPECT_NE(first->find("--advertise"), std::string::npos);
  for (int second = 5; second < 3600; second += 5)
    EXPECT_FALSE(reach.undialled(kStart + std::chrono::seconds(second), "a:1 refused").has_value());
  EXPECT_TRUE(reach.undialled(kStart + 3600s, "a:1 timed out").has_value());
  EXPECT_NE(reach.why().find("a:1 timed out"), std::string::npos);
}

TEST(ReachabilityTest, GivesUpAfterItsPatienceWhichIsLongerForOneThatWasAdmitted) {
  Reachability stranger = patient(), member = patient();
  member.admitted();
  stranger.undialled(kStart, "a:1 refused");
  member.undialled(kStart, "a:1 refused");
  stranger.undialled(kStart + 50s, "a:1 refused");  // counts from the first
  EXPECT_TRUE(stranger.check(kStart + 60s).ok());
  EXPECT_EQ(stranger.check(kStart + 60s + 1ms).code(), ErrorCode::kUnreachable);
  EXPECT_TRUE(member.check(kStart + 3600s).ok());
  EXPECT_EQ(member.check(kStart + 3600s + 1ms).code(), ErrorCode::kUnreachable);
}

TEST(ReachabilityTest, AdmissionAndALostLinkBeginTheCountAnew) {
  Reachability reach = patient();
  EXPECT_TRUE(reach.check(kStart + 9000s).ok()) << "nobody said that we cannot be dialled";
  reach.undialled(kStart, "a:1 refused");
  reach.link_down();
  EXPECT_TRUE(reach.check(kStart + 9000s).ok());
  EXPECT_TRUE(reach.undialled(kStart + 1s, "a:1 refused").has_value()) << "told over a new link, however soon";
  reach.admitted();
  EXPECT_TRUE(reach.check(kStart + 9000s).ok());
}

TEST(ReachabilityTest, WhoIsToldToComeLaterWaitsAsLongAsThatTakes) {
  Reachability reach = patient();
  reach.undialled(kStart, "a:1 refused");
  const auto line = reach.told_to_wait("too many join; 30 s");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->find("--advertise"), std::string::npos) << "nothing is wrong with its address";
  EXPECT_FALSE(reach.told_to_wait("too many join; 25 s").has_value()) << "the status counts it down";
  reach.admitted();
  EXPECT_TRUE(reach.told_to_wait("too many join; 30 s").has_value()) << "of another session";
  EXPECT_TRUE(reach.check(kStart + 9000s).ok());
}

}  // namespace
}  // namespace shoal
