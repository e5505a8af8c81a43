// Rounds whose parts some of their members own.
#include <gtest/gtest.h>

#include "tests/sync/round_rig.h"

namespace shoal {
namespace {

// Only the owners add up; each other member sends them one payload and gets one back.
TEST_F(RoundTest, WhoOwnsNothingMeetsTheOwnersAlone) {
  for (const RoundOwners& owners : {RoundOwners{2}, RoundOwners{0, 3}, RoundOwners{1, 2, 3}}) {
    members.clear();
    all.clear();
    make(4);
    open_all(owned_by(owners));
    std::set<Session> owning;
    for (const std::uint16_t owner : owners) owning.insert(members[owner]->self);
    for (const auto& member : members) {
      ASSERT_EQ(member->reports.back().kind, ReportKind::kAgreed);
      EXPECT_EQ(member->reports.back().digest, members[0]->reports.back().digest);
      EXPECT_EQ(member->reports.back().weight, 10u);
      EXPECT_EQ(test::values_of(member->sum), (std::vector<float>{10, 8, 12, 16, 20}));
      const bool owns = owning.contains(member->self);
      EXPECT_EQ(member->parts_sent, static_cast<int>(owns ? owners.size() - 1 + 3 : owners.size()));
      if (!owns) {
        EXPECT_EQ(member->sent_to, owning);
      }
    }
  }
}

TEST_F(RoundTest, AnOpeningWhoseOwnersAreNoneOfItsMembersIsRefusedByName) {
  for (const RoundOwners& owners :
       {RoundOwners{}, RoundOwners{2}, RoundOwners{0, 2}, RoundOwners{1, 0}, RoundOwners{0, 0}, RoundOwners{0, 1, 1}}) {
    members.clear();
    all.clear();
    make(2);
    members[0]->round.on_open(owned_by(owners));
    ASSERT_EQ(members[0]->reports.size(), 1u);
    EXPECT_EQ(members[0]->reports[0].kind, ReportKind::kFailed);
    EXPECT_NE(members[0]->reports[0].reason.find("owners"), std::string::npos);
    EXPECT_TRUE(members[0]->calls.empty());
  }
}

// A member that waits for a sum says so: its owner may wait itself, for what the silent one did not bring.
TEST_F(RoundTest, ASilentMemberThatOwnsNothingIsNamedByTheOwnersAndTheyByTheOthers) {
  make(4);
  members[3]->mute = true;
  open_all(owned_by({0, 1}));
  loop.run_for(1100ms);
  for (const std::size_t owner : {0u, 1u}) {
    EXPECT_EQ(members[owner]->reports.back().silent, members[3]->self);
    EXPECT_FALSE(members[owner]->reports.back().sum);
  }
  EXPECT_EQ(members[2]->reports.back().silent, members[0]->self);
  EXPECT_TRUE(members[2]->reports.back().sum);
}

TEST_F(RoundTest, AnOwnerThatDiesInTheMiddleIsNamedByAll) {
  make(4);
  members[1]->mute = true;
  open_all(owned_by({0, 1}));
  loop.run_for(1100ms);
  for (const std::size_t other : {0u, 2u, 3u}) {
    EXPECT_EQ(members[other]->reports.back().kind, ReportKind::kFailed);
    EXPECT_EQ(members[other]->reports.back().silent, members[other == 0 ? 1 : 0]->self);
    EXPECT_EQ(members[other]->reports.back().sum, other != 0);
  }
  members[1]->mute = false;
  open_all(owned_by({0, 1}, 2));
  for (const auto& member : members) EXPECT_EQ(member->reports.back().kind, ReportKind::kAgreed);
}

// What is for an owner is no part of one that owns nothing, and a sum comes from its owner alone.
TEST_F(RoundTest, PartsThatAreNobodysChangeNothing) {
  make(3);
  const RoundOpen message = owned_by({1, 2});
  members[0]->round.on_open(message);
  RoundPart part;
  part.round = RoundId(1);
  members[0]->round.on_part(members[1]->self, part, Bytes());
  part.phase = 1;
  part.part = 1;
  members[0]->round.on_part(members[1]->self, part, Bytes());
  EXPECT_EQ(members[0]->reports.size(), 1u);
  for (const std::size_t other : {1u, 2u}) members[other]->round.on_open(message);
  pump();
  for (const auto& member : members) EXPECT_EQ(member->reports.back().kind, ReportKind::kAgreed);
}

}  // namespace
}  // namespace shoal
