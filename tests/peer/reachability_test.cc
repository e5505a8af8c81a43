#include "runtime/peer/reachability.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kStart = TimePoint{} + 100s;

MemberList list_with(std::size_t dialable, std::vector<RelayPlace> relays) {
  MemberList list;
  list.stages.emplace_back();
  for (std::uint64_t i = 1; i <= dialable; ++i) {
    Member member;
    member.peer.bytes[0] = static_cast<std::uint8_t>(i);
    member.whereabouts.addresses = {"192.0.2.9:" + std::to_string(i)};
    list.stages[0].members.push_back(member);
  }
  list.relays = std::move(relays);
  return list;
}

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
  const std::vector<RelayPlace> two = {{"192.0.2.1:443"}, {"192.0.2.2:443"}};
  const std::vector<std::string> homes = homes_of({}, {two[0].address, two[1].address});
  Member self;
  self.whereabouts = {{}, Reach::kNone};
  Reachability reach;
  (void)reach.on_list(self.whereabouts);
  EXPECT_EQ(reach.on_others(list_with(6, two), self), homes);
  const auto line = reach.answered(kStart, none("a:1 refused"));
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->find("reach: none (a:1 refused): nobody dials it. It takes part all the same, and is called at " +
                       homes[0] + ", " + homes[1] + ", and dials 6 members. HINT: --advertise HOST:PORT"),
            0u)
      << *line;
  EXPECT_FALSE(reach.on_others(list_with(7, two), self).has_value()) << "the wire knows them";
  EXPECT_FALSE(reach.answered(kStart + 600s, none("a:1 refused")).has_value());
  EXPECT_EQ(reach.on_others(list_with(7, {}), self), std::vector<std::string>());
  EXPECT_TRUE(reach.answered(kStart + 1200s, none("a:1 refused")).has_value()) << "no relay is left";
  self.whereabouts.reach = Reach::kDirect;
  EXPECT_FALSE(reach.on_others(list_with(7, two), self).has_value()) << "everybody dials it";
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

TEST(ReachabilityTest, WhatTheRouterMapsIsTriedAtOnceAndSaid) {
  Reachability reach;
  Whereabouts told{{"192.168.7.2:4700"}};
  (void)reach.on_list({{}, Reach::kNone});
  (void)reach.take_query(kStart, told);
  (void)reach.answered(kStart, none("192.168.7.2:4700 is not dialled"));
  EXPECT_FALSE(reach.take_query(kStart + 1s, told));
  told.addresses.insert(told.addresses.begin(), "198.51.100.9:4700");
  reach.told_elsewhere({"198.51.100.9:4700"}, "mapped by PCP");
  EXPECT_TRUE(reach.take_query(kStart + 1s, told));
  EXPECT_EQ(reach.on_list({{"198.51.100.9:4700"}, Reach::kDirect}), "reach: direct (198.51.100.9:4700), mapped by PCP");
}

TEST(ReachabilityTest, WhyTheRouterMapsNothingIsSaid) {
  Reachability reach;
  (void)reach.on_list({{}, Reach::kNone});
  reach.told_elsewhere({}, "the router speaks neither PCP nor NAT-PMP");
  const auto line = reach.answered(kStart, none("192.168.7.2:4700 is not dialled"));
  ASSERT_TRUE(line.has_value());
  EXPECT_NE(line->find("is not dialled; the router speaks neither PCP nor NAT-PMP)"), std::string::npos) << *line;
  reach.told_elsewhere({}, "mapped by PCP");
  EXPECT_EQ(reach.on_list({{"203.0.113.1:4700"}, Reach::kDirect}), "reach: direct (203.0.113.1:4700)")
      << "another address than a mapped one answers";
}

}  // namespace
}  // namespace shoal
