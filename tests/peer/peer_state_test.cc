#include "runtime/peer/peer_state.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace shoal {
namespace {

const std::vector<PeerPhase> kAll = {PeerPhase::kConnecting, PeerPhase::kJoining,    PeerPhase::kFetching,
                                     PeerPhase::kLoading,    PeerPhase::kServing,    PeerPhase::kLeaving,
                                     PeerPhase::kPaused,     PeerPhase::kRestarting, PeerPhase::kOver};

TEST(PeerStateTest, APeerMayGoTheWholeWayAndComesBackAsANewSession) {
  PeerState state;
  EXPECT_TRUE(state.is(PeerPhase::kConnecting));
  for (const PeerPhase next :
       {PeerPhase::kJoining, PeerPhase::kFetching, PeerPhase::kLoading, PeerPhase::kFetching, PeerPhase::kLoading,
        PeerPhase::kServing, PeerPhase::kRestarting, PeerPhase::kConnecting, PeerPhase::kJoining, PeerPhase::kServing,
        PeerPhase::kLeaving, PeerPhase::kRestarting, PeerPhase::kPaused, PeerPhase::kConnecting, PeerPhase::kOver}) {
    state.move(next, std::string(name_of(next)));
    EXPECT_EQ(state.phase(), next);
    EXPECT_EQ(state.reason(), name_of(next));
    EXPECT_EQ(state.in_session(),
              next != PeerPhase::kPaused && next != PeerPhase::kRestarting && next != PeerPhase::kOver);
  }
}

TEST(PeerStateTest, NothingFollowsTheEndAndEverythingMayEnd) {
  for (const PeerPhase phase : kAll) {
    EXPECT_FALSE(may_follow(PeerPhase::kOver, phase)) << name_of(phase);
    EXPECT_EQ(may_follow(phase, PeerPhase::kOver), phase != PeerPhase::kOver) << name_of(phase);
    EXPECT_FALSE(may_follow(phase, phase)) << name_of(phase);
  }
}

TEST(PeerStateTest, NobodyServesWithoutAStateAndAPeerThatLeftEndsOrBeginsAnew) {
  std::set<PeerPhase> before_serving, after_leaving;
  for (const PeerPhase phase : kAll) {
    if (may_follow(phase, PeerPhase::kServing)) before_serving.insert(phase);
    if (may_follow(PeerPhase::kLeaving, phase)) after_leaving.insert(phase);
  }
  EXPECT_EQ(before_serving, (std::set{PeerPhase::kJoining, PeerPhase::kLoading}));
  EXPECT_EQ(after_leaving, (std::set{PeerPhase::kRestarting, PeerPhase::kOver}));
}

TEST(PeerStateTest, APauseBeginsBetweenTwoSessionsAndANewOneFollows) {
  for (const PeerPhase phase : kAll) {
    EXPECT_EQ(may_follow(phase, PeerPhase::kPaused), phase == PeerPhase::kRestarting) << name_of(phase);
    EXPECT_EQ(may_follow(PeerPhase::kPaused, phase), phase == PeerPhase::kConnecting || phase == PeerPhase::kOver);
  }
}

TEST(PeerStateDeathTest, AMoveThatIsNotInTheTableStopsTheProcess) {
  PeerState state;
  EXPECT_DEATH(state.move(PeerPhase::kServing, ""), "connecting and serving");
}

TEST(PeerStateTest, EveryPhaseHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const PeerPhase phase : kAll) names.insert(name_of(phase));
  EXPECT_EQ(names.size(), kAll.size());
}

}  // namespace
}  // namespace shoal
