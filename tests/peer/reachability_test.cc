#include "runtime/peer/reachability.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kStart = TimePoint{} + 100s;

ReachAnswer none(const std::string& why) { return {Reach::kNone, "198.51.100.9", why}; }

TEST(ReachabilityTest, TheSameIsToldOnceAndAnythingElseAtOnce) {
  Reachability reach;
  const auto first = reach.kept_out("a pair");
  ASSERT_TRUE(first.has_value());
  EXPECT_NE(first->find("a pair; not admitted"), std::string::npos) << *first;
  EXPECT_FALSE(reach.kept_out("a pair").has_value());
  EXPECT_TRUE(reach.kept_out("another pair").has_value());
  EXPECT_EQ(reach.why(), "another pair");
  ASSERT_TRUE(reach.told_to_wait("too many join; 30 s").has_value());
  EXPECT_FALSE(reach.told_to_wait("too many join; 25 s").has_value()) << "the status counts it down";
  reach.admitted();
  EXPECT_TRUE(reach.told_to_wait("too many join; 30 s").has_value()) << "of another session";
  EXPECT_TRUE(reach.kept_out("another pair").has_value());
}

TEST(ReachabilityTest, ReachIsSaidOnceWithTheRemedy) {
  Reachability reach;
  EXPECT_FALSE(reach.on_list({{}, Reach::kNone}).has_value()) << "why, is not known yet";
  const auto line = reach.answered(kStart, none("a:1 refused"));
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->find("reach: none (a:1 refused): nobody dials it, and the run has no relay: "), 0u) << *line;
  EXPECT_NE(line->find("HINT: whoever launched the run gives it a relay with --relay RATE"), std::string::npos)
      << *line;
  EXPECT_NE(line->find("HINT: --advertise HOST:PORT"), std::string::npos) << *line;
  EXPECT_FALSE(reach.answered(kStart + 600s, none("a:1 refused")).has_value());
  EXPECT_EQ(reach.on_list({{"192.0.2.7:1", "192.0.2.8:1"}}), "reach: direct (192.0.2.7:1, 192.0.2.8:1)");
  EXPECT_FALSE(reach.on_list({{"192.0.2.7:1", "192.0.2.8:1"}}).has_value());
}

TEST(ReachabilityTest, RelaysAreNamedAndTheCountOfMembersIsNoNews) {
  Reachability reach;
  (void)reach.on_list({{}, Reach::kNone});
  reach.on_others({"192.0.2.1:443", "192.0.2.2:443"}, 6);
  const auto line = reach.answered(kStart, none("a:1 refused"));
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->find("reach: none (a:1 refused): nobody dials it. It takes part all the same, and is called at "
                       "192.0.2.1:443, 192.0.2.2:443, and dials 6 members. HINT: --advertise HOST:PORT"),
            0u)
      << *line;
  reach.on_others({"192.0.2.1:443", "192.0.2.2:443"}, 7);
  EXPECT_FALSE(reach.answered(kStart + 600s, none("a:1 refused")).has_value());
  reach.on_others({}, 7);
  EXPECT_TRUE(reach.answered(kStart + 1200s, none("a:1 refused")).has_value()) << "no relay is left";
}

TEST(ReachabilityTest, TheAuthorityIsAskedAgainSoonAfterALinkAndThenMoreSeldom) {
  const Whereabouts told{{"192.0.2.7:1", "192.0.2.8:1"}};
  Reachability reach;
  EXPECT_FALSE(reach.take_query(kStart, told)) << "no member";
  (void)reach.on_list({{}, Reach::kNone});
  EXPECT_FALSE(reach.take_query(kStart, told)) << "it has just dialled us";
  EXPECT_TRUE(reach.take_query(kStart + 5s, told));
  EXPECT_FALSE(reach.take_query(kStart + 6s, told));
  EXPECT_TRUE(reach.take_query(kStart + 10s, told)) << "nothing was answered";
  (void)reach.answered(kStart + 11s, none("refused"));
  TimePoint at = kStart + 11s;
  for (Duration pause = Reachability::kAskSoon; pause < Reachability::kAskAgain; pause *= 2) {
    EXPECT_FALSE(reach.take_query(at + pause - 1ms, told));
    EXPECT_TRUE(reach.take_query(at + pause, told));
    at += pause;
    (void)reach.answered(at, none("refused"));
  }
  EXPECT_FALSE(reach.take_query(at + Reachability::kAskAgain - 1ms, told));
  EXPECT_TRUE(reach.take_query(at + Reachability::kAskAgain, told));
  reach.link_down();
  at += 700s;
  EXPECT_FALSE(reach.take_query(at, told));
  EXPECT_TRUE(reach.take_query(at + 5s, told)) << "the link may come from another address";
  (void)reach.on_list({{"192.0.2.7:1"}});
  EXPECT_TRUE(reach.take_query(at + 10s, told)) << "one address did not answer yet";
  (void)reach.answered(at + 11s, {Reach::kDirect, "192.0.2.7", ""});
  EXPECT_FALSE(reach.take_query(kStart + 9000s, told)) << "once is enough where one can be dialled";
}

}  // namespace
}  // namespace shoal
