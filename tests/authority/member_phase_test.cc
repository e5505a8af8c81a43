// The phases of a member: each way that exists, and none besides.
#include "authority/member_phase.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "authority/member_state.h"

namespace shoal {
namespace {

using enum MemberPhase;

const std::map<MemberPhase, std::set<MemberPhase>> kWays = {
    {kNew, {kIdle, kFetching, kReady}},  {kIdle, {kReady, kOutdated, kAhead}},
    {kFetching, {kOvertaken, kReady}},   {kOvertaken, {kFetching, kReady}},
    {kReady, {kIdle, kAhead}},           {kOutdated, {kIdle, kReady, kAhead}},
    {kAhead, {kIdle, kReady, kOutdated}}};

bool joins(MemberPhase phase) { return phase == kFetching || phase == kOvertaken; }

TEST(MemberPhaseTest, FollowsThoseOfTheTableAndItself) {
  ASSERT_EQ(kWays.size(), static_cast<std::size_t>(kMemberPhases));
  for (const auto& [from, ways] : kWays)
    for (const auto& [to, unused] : kWays)
      EXPECT_EQ(may_follow(from, to), from == to || ways.contains(to))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
}

TEST(MemberPhaseTest, EveryBeatLeadsWhereTheTableAllows) {
  std::set<std::pair<MemberPhase, MemberPhase>> seen;
  for (const auto& [from, ways] : kWays) {
    if (from == kNew) continue;  // no beat comes before its admission or its log record
    for (const bool serving : {false, true})
      for (const std::uint64_t version : {1u, 2u, 3u}) {
        if (joins(from) && serving && version > 2) continue;  // its session is over instead
        const MemberPhase to = phase_after_beat(from, serving, Version(version), Version(2));
        EXPECT_TRUE(may_follow(from, to)) << static_cast<int>(from) << " to " << static_cast<int>(to);
        if (from != to) seen.emplace(from, to);
      }
  }
  for (const auto& [from, ways] : kWays)
    for (const MemberPhase to : ways)
      EXPECT_TRUE(from == kNew || seen.contains({from, to}))
          << "no beat leads from " << static_cast<int>(from) << " to " << static_cast<int>(to);
}

TEST(MemberPhaseTest, AReadyMemberStaysReadyWithAnOlderVersionAndOthersBecomeReadyAtTheNewestAlone) {
  EXPECT_EQ(phase_after_beat(kReady, true, Version(1), Version(2)), kReady);
  EXPECT_EQ(phase_after_beat(kIdle, true, Version(1), Version(2)), kOutdated);
  EXPECT_EQ(phase_after_beat(kFetching, true, Version(1), Version(2)), kOvertaken);
  EXPECT_EQ(phase_after_beat(kOvertaken, true, Version(2), Version(2)), kReady);
  EXPECT_EQ(phase_after_beat(kReady, false, Version(2), Version(2)), kIdle);
  EXPECT_EQ(phase_after_beat(kOvertaken, false, Version(0), Version(2)), kFetching);
}

TEST(MemberPhaseTest, AMemberSaysOfItsPhaseWhatItIs) {
  MemberState member;
  EXPECT_FALSE(member.ready() || member.serves() || member.to_fetch() || member.ahead());
  member.enter(kFetching);
  EXPECT_TRUE(member.to_fetch() && !member.serves());
  member.enter(kOvertaken);
  EXPECT_TRUE(member.to_fetch() && member.serves() && !member.ready());
  member.enter(kReady);
  EXPECT_TRUE(member.ready() && member.serves() && !member.to_fetch());
  member.enter(kAhead);
  EXPECT_TRUE(member.ahead() && member.serves() && !member.ready());
  member.enter(kOutdated);
  EXPECT_TRUE(member.serves() && !member.ready() && !member.ahead() && !member.to_fetch());
}

TEST(MemberPhaseDeathTest, AWayThatIsNotInTheTableIsABug) {
  MemberState member;
  member.enter(kFetching);
  EXPECT_DEATH(member.enter(kAhead), "may_follow");
}

}  // namespace
}  // namespace shoal
