// What the directory is told of how a run stands.
#include "runtime/launch/standing.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

class StandingTest : public testing::Test {
 protected:
  static Session session(std::uint64_t n) { return {n << 32, n}; }
  Standing::Facts facts(std::vector<std::size_t> serving) const {
    Standing::Facts facts{.begun = begun, .stages = {}, .members = members};
    for (std::size_t stage = 0; stage < serving.size(); ++stage)
      facts.stages.push_back({StageId(static_cast<std::uint16_t>(stage)), serving[stage], begun, false, {session(9)}});
    return facts;
  }
  bool look(const Standing::Facts& what) {
    now += 1s;
    return standing.look(what, now, WallTime(now.time_since_epoch()));
  }

  bool begun = false;
  std::vector<MemberLife> members;
  TimePoint now{100s};
  Standing standing;
};

TEST_F(StandingTest, TheStateFollowsTheStagesAndKeepsSinceWhen) {
  look(facts({1, 0}));
  EXPECT_EQ(standing.record(now).state, RunState::kWaiting);
  look(facts({1, 1}));
  EXPECT_EQ(standing.record(now).state, RunState::kTraining);
  begun = true;
  EXPECT_TRUE(look(facts({1, 0})));
  const StandingRecord parked = standing.record(now);
  EXPECT_EQ(parked.state, RunState::kParked);
  EXPECT_EQ(parked.stage, StageId(1));
  EXPECT_EQ(parked.last, std::vector<std::string>{"00000009"});
  EXPECT_FALSE(look(facts({1, 0}))) << "nothing new";
  EXPECT_EQ(standing.record(now).since, parked.since);
  Standing::Facts cut = facts({1, 1});
  cut.stages[0].stranded = true;
  look(cut);
  EXPECT_TRUE(standing.record(now).stranded);
  EXPECT_NE(standing.record(now).since, parked.since) << "parked for another reason";
  cut.finishing = true;
  look(cut);
  EXPECT_EQ(standing.record(now).state, RunState::kEnding);
  cut.ended = true;
  look(cut);
  EXPECT_EQ(standing.record(now).state, RunState::kEnded);
}

TEST_F(StandingTest, AMemberThatFallsSilentOrGoesIsNews) {
  members = {{session(1), StageId(0), true, false, 1s}, {session(2), StageId(0), false, false, 1s}};
  EXPECT_TRUE(look(facts({1})));
  members[0].quiet = 2s;
  EXPECT_FALSE(look(facts({1})));
  members[0].quiet = Standing::kQuiet;
  EXPECT_TRUE(look(facts({1})));
  EXPECT_EQ(standing.record(now).peers.at(0).quiet_s, 5);
  EXPECT_EQ(standing.record(now).peers.at(1).place, MemberRow::Place::kJoining);
  members.erase(members.begin());
  standing.on_session_over(session(1), StageId(0), now);
  EXPECT_TRUE(look(facts({1})));
  const StandingRecord gone = standing.record(now + 30s);
  ASSERT_EQ(gone.peers.size(), 2u);
  EXPECT_EQ(gone.peers[1].place, MemberRow::Place::kGone);
  EXPECT_EQ(gone.peers[1].quiet_s, 31);
  Session again = session(1);
  again.incarnation = 77;
  members.push_back({again, StageId(0), true, false, 0s});
  look(facts({1}));
  EXPECT_EQ(standing.record(now).peers.size(), 2u) << "who is back is not gone";
}

TEST_F(StandingTest, NoMoreThanSoManyOfThoseThatWentAreKeptAndNotForEver) {
  for (std::uint64_t n = 1; n <= 100; ++n) standing.on_session_over(session(n), StageId(0), now);
  look(facts({1}));
  EXPECT_EQ(standing.record(now).peers.size(), Standing::kGoneMax);
  now += Standing::kGoneTold;
  look(facts({1}));
  EXPECT_TRUE(standing.record(now).peers.empty());
}

TEST_F(StandingTest, TheRateIsOfTheLastSecondsAndComesDownWhenNothingMoves) {
  for (int i = 0; i <= 20; ++i) {
    standing.on_progress(static_cast<std::uint64_t>(1000 * i), 3.5, static_cast<std::uint64_t>(i), now);
    now += 1s;
  }
  EXPECT_NEAR(standing.record(now).figures.rate.value_or(0), 1000, 120);
  EXPECT_EQ(standing.record(now).figures.step, 20u);
  EXPECT_DOUBLE_EQ(standing.record(now).figures.loss.value_or(0), 3.5);
  now += kRateWindow;
  EXPECT_EQ(standing.record(now).figures.rate, 0);
}

}  // namespace
}  // namespace shoal
