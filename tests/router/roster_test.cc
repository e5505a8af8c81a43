// The member list as the router sees it.
#include "router/roster.h"

#include <gtest/gtest.h>

#include "common/rng.h"
#include "names.h"

namespace shoal {
namespace {

using namespace naming;

struct Place {
  std::uint64_t tag;
  std::uint16_t stage;
  bool serving;
};

MemberList list(std::uint64_t epoch, const std::vector<Place>& places) {
  MemberList result;
  result.epoch = Epoch(epoch);
  for (std::uint16_t k = 0; k < 3; ++k) {
    StageMembers stage;
    stage.stage = StageId(k);
    for (const Place& place : places) {
      if (place.stage != k) continue;
      Member member;
      member.session = session(place.tag);
      member.peer.bytes[0] = static_cast<std::uint8_t>(place.tag);
      member.serving = place.serving;
      stage.members.push_back(member);
    }
    result.stages.push_back(stage);
  }
  return result;
}

TEST(RosterTest, TellsWhoCameAndWhoIsOver) {
  Roster roster;
  EXPECT_EQ(roster.update(list(1, {{1, 0, true}, {2, 1, true}})).added.size(), 2u);
  const Roster::Change change = roster.update(list(2, {{2, 1, true}, {3, 0, false}}));
  ASSERT_EQ(change.added.size(), 1u);
  EXPECT_EQ(change.added[0].session, session(3));
  EXPECT_EQ(change.over, std::vector{session(1)});
  EXPECT_EQ(roster.stage_of(session(1)), std::nullopt);
  EXPECT_EQ(roster.stage_of(session(2)), StageId(1));
}

TEST(RosterTest, AnOlderListChangesNothing) {
  Roster roster;
  (void)roster.update(list(5, {{1, 0, true}}));
  const Roster::Change change = roster.update(list(4, {}));
  EXPECT_TRUE(change.over.empty());
  EXPECT_EQ(roster.serving(StageId(0)), std::vector{session(1)});
  EXPECT_EQ(roster.list().epoch, Epoch(5));
}

TEST(RosterTest, TellsWhoServesAStage) {
  Roster roster;
  (void)roster.update(list(1, {{1, 0, true}, {2, 0, true}, {3, 0, false}, {4, 1, true}}));
  EXPECT_EQ(roster.serving(StageId(0)), (std::vector{session(1), session(2)}));
  EXPECT_TRUE(roster.serving(StageId(2)).empty());
}

TEST(RosterTest, TheServingOfAStageAreThoseOfTheNewestListWhateverItIs) {
  Rng rng(5);
  Roster roster;
  for (std::uint64_t epoch = 1; epoch <= 200; ++epoch) {
    std::vector<Place> places;
    std::map<std::uint16_t, std::vector<Session>> wanted;
    for (std::uint64_t tag = 1; tag <= 12; ++tag) {
      if (rng.chance(0.3)) continue;
      places.push_back({tag, static_cast<std::uint16_t>(rng.below(3)), rng.chance(0.7)});
      if (places.back().serving) wanted[places.back().stage].push_back(session(tag));
    }
    (void)roster.update(list(epoch, places));
    for (std::uint16_t k = 0; k < 3; ++k) {
      EXPECT_EQ(roster.serving(StageId(k)), wanted[k]) << "list " << epoch << ", stage " << k;
    }
  }
}

TEST(RosterTest, FindsPeersAndSessions) {
  Roster roster;
  (void)roster.update(list(1, {{7, 2, true}}));
  const auto peer = roster.peer_of(session(7));
  ASSERT_TRUE(peer);
  EXPECT_EQ(roster.session_of(*peer), session(7));
  EXPECT_EQ(roster.peer_of(session(8)), std::nullopt);
  EXPECT_EQ(roster.session_of(PeerId{}), std::nullopt);
}

}  // namespace
}  // namespace shoal
