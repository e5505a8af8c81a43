#include "authority/moves.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

class MovesTest : public testing::Test {
 protected:
  static PeerId peer(std::uint8_t number) {
    PeerId id;
    id.bytes[0] = number;
    return id;
  }
  static Session session(std::uint8_t number, std::uint64_t life = 1) { return {number, life}; }
  // Stage 0 has the peers 1 to 4, stage 1 has 5 and stage 2 has 6 and 7.
  std::vector<Worker> swarm() const {
    std::vector<Worker> all;
    for (std::uint8_t i = 1; i <= 7; ++i)
      all.push_back({.session = session(i),
                     .peer = peer(i),
                     .stage = StageId(i <= 4   ? 0
                                      : i == 5 ? 1
                                               : 2),
                     .speed = 1,
                     .movable = true});
    return all;
  }
  static std::vector<StageLoad> stages() {
    return {{.stage = StageId(0)}, {.stage = StageId(1)}, {.stage = StageId(2)}};
  }
  std::optional<PlannedMove> look(std::vector<Worker> all) {
    now += Moves::kLookEvery;
    return moves.look(stages(), std::move(all), {}, now);
  }
  PlannedMove ask() {
    EXPECT_FALSE(look(swarm()));
    const auto move = look(swarm());
    EXPECT_TRUE(move);
    return move.value_or(PlannedMove{});
  }

  Moves moves;
  TimePoint now{};
};

TEST_F(MovesTest, AsksWhenTwoLooksInARowWantIt) {
  EXPECT_FALSE(look(swarm()));
  auto balanced = swarm();
  balanced[0].stage = StageId(1);
  EXPECT_FALSE(look(balanced));
  EXPECT_FALSE(look(swarm())) << "the look before wanted nothing";
  const auto move = look(swarm());
  ASSERT_TRUE(move);
  EXPECT_EQ(move->to, StageId(1));
  EXPECT_EQ(moves.asked(move->peer, move->session), StageId(1));
  EXPECT_EQ(moves.asked(peer(7), session(7)), std::nullopt);
}

TEST_F(MovesTest, OnTheWayItCountsWhereItGoesAndNobodyElseIsSentThere) {
  const PlannedMove move = ask();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(look(swarm()));
  moves.on_over(move.peer, move.session, true, now);
  EXPECT_EQ(moves.asked(move.peer, move.session), std::nullopt);
  auto left = swarm();
  std::erase_if(left, [&](const Worker& worker) { return worker.session == move.session; });
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(look(left)) << "stage 1 waits for it";
}

TEST_F(MovesTest, WhoDoesNotBeginRestsAndAnotherIsAsked) {
  const PlannedMove first = ask();
  std::optional<PlannedMove> second;
  for (int i = 0; i < 6 && !second; ++i) second = look(swarm());
  ASSERT_TRUE(second);
  EXPECT_NE(second->peer, first.peer);
  EXPECT_EQ(moves.asked(first.peer, first.session), std::nullopt);
}

TEST_F(MovesTest, WhoLeavesForLongIsWaitedFor) {
  const PlannedMove move = ask();
  moves.on_leaving(move.peer, move.session, now);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(look(swarm())) << "its work waits for a round";
  EXPECT_EQ(moves.asked(move.peer, move.session), std::nullopt);
}

// Says that it leaves, and stays for ever; or comes, and never serves.
TEST_F(MovesTest, AMoverThatNeverArrivesHoldsItsStagesForAWhile) {
  for (const bool comes : {false, true}) {
    moves = Moves();
    const PlannedMove move = ask();
    moves.on_leaving(move.peer, move.session, now);
    const TimePoint begun = now;
    auto all = swarm();
    if (comes) {
      moves.on_over(move.peer, move.session, true, now);
      moves.on_joined(move.peer, session(move.peer.bytes[0], 2), move.to, now);
      std::erase_if(all, [&](const Worker& worker) { return worker.session == move.session; });
    }
    std::optional<PlannedMove> next;
    while (!next && now < begun + 2 * Moves::kArrivesMax) next = look(all);
    ASSERT_TRUE(next) << comes;
    EXPECT_NE(next->peer, move.peer) << "it rests";
    EXPECT_GE(now - begun, comes ? Moves::kArrivesMax : Moves::kLeavesMax);
  }
}

TEST_F(MovesTest, AMoverCountsWhereItGoesAlsoForJoiners) {
  const PlannedMove move = ask();
  moves.on_over(move.peer, move.session, true, now);
  std::vector<Worker> others = swarm();
  std::erase_if(others, [&](const Worker& worker) { return worker.session == move.session; });
  std::vector<Worker> seen = others;
  moves.place(seen, {});
  ASSERT_EQ(seen.size(), others.size() + 1);
  EXPECT_EQ(seen.back().stage, move.to);
  EXPECT_EQ(seen.back().speed, 1);
  seen = others;
  moves.place(seen, move.peer);
  EXPECT_EQ(seen.size(), others.size()) << "it is the joiner";
}

TEST_F(MovesTest, WhoMovedRests) {
  const PlannedMove move = ask();
  const Session next = session(move.peer.bytes[0], 2);
  moves.on_over(move.peer, move.session, true, now);
  moves.on_joined(move.peer, next, move.to, now);
  moves.on_serving(move.peer, next, now);
  // Now stage 0 has lost all but one, and the one that moved is the obvious one to go back.
  std::vector<Worker> all = {
      {.session = next, .peer = move.peer, .stage = StageId(1), .speed = 1, .movable = true},
      {.session = session(5), .peer = peer(5), .stage = StageId(1), .speed = 1, .movable = false},
      {.session = session(6), .peer = peer(6), .stage = StageId(2), .speed = 2, .movable = true},
      {.session = session(8), .peer = peer(8), .stage = StageId(0), .speed = 0.5, .movable = true}};
  const TimePoint served = now;
  while (now + Moves::kLookEvery < served + Moves::kRest) EXPECT_FALSE(look(all));
  std::optional<PlannedMove> back;
  for (int i = 0; i < 3 && !back; ++i) back = look(all);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->peer, move.peer);
}

TEST_F(MovesTest, AMoverThatDiesIsForgotten) {
  const PlannedMove move = ask();
  moves.on_over(move.peer, move.session, false, now);
  auto left = swarm();
  std::erase_if(left, [&](const Worker& worker) { return worker.session == move.session; });
  std::optional<PlannedMove> next;
  for (int i = 0; i < 3 && !next; ++i) next = look(left);
  ASSERT_TRUE(next) << "stage 1 is open again";
  EXPECT_NE(next->peer, move.peer);
}

TEST_F(MovesTest, AMoverThatDoesNotComeBackIsWaitedForAWhile) {
  const PlannedMove move = ask();
  moves.on_over(move.peer, move.session, true, now);
  auto left = swarm();
  std::erase_if(left, [&](const Worker& worker) { return worker.session == move.session; });
  const TimePoint gone = now;
  std::optional<PlannedMove> next;
  while (!next && now < gone + 2 * Moves::kReturns) next = look(left);
  ASSERT_TRUE(next);
  EXPECT_GT(now, gone + Moves::kReturns);
}

TEST_F(MovesTest, ALateSessionOfAnotherStageEndsTheMove) {
  const PlannedMove move = ask();
  moves.on_over(move.peer, move.session, true, now);
  moves.on_joined(move.peer, session(move.peer.bytes[0], 2), StageId(2), now);
  auto all = swarm();
  std::erase_if(all, [&](const Worker& worker) { return worker.session == move.session; });
  std::optional<PlannedMove> next;
  for (int i = 0; i < 3 && !next; ++i) next = look(all);
  EXPECT_TRUE(next);
}

}  // namespace
}  // namespace shoal
