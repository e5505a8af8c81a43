#include "authority/move_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/rng.h"

namespace shoal {
namespace {

std::vector<StageLoad> stages(std::size_t count) {
  std::vector<StageLoad> loads;
  for (std::size_t i = 0; i < count; ++i) loads.push_back({.stage = StageId(static_cast<std::uint16_t>(i))});
  return loads;
}

// Workers by stage, with their speeds.
std::vector<Worker> workers(const std::vector<std::vector<double>>& speeds) {
  std::vector<Worker> all;
  for (std::size_t stage = 0; stage < speeds.size(); ++stage)
    for (const double speed : speeds[stage]) {
      Worker worker{.session = Session{all.size() + 1, 1},
                    .peer = {},
                    .stage = StageId(static_cast<std::uint16_t>(stage)),
                    .speed = speed,
                    .movable = true};
      worker.peer.bytes[0] = static_cast<std::uint8_t>(all.size() + 1);
      all.push_back(worker);
    }
  return all;
}

// Follows the plan until it has no more to say.
std::vector<double> settle(const std::vector<StageLoad>& loads, std::vector<Worker> all, std::size_t* moves = nullptr) {
  std::size_t made = 0;
  while (const auto move = plan_move(loads, all, {})) {
    for (Worker& worker : all)
      if (worker.session == move->session) worker.stage = move->to;
    if (++made > 100) ADD_FAILURE() << "it goes round in a circle";
    if (made > 100) break;
  }
  if (moves) *moves = made;
  return stage_rates(loads, all);
}

TEST(MovePlanTest, ASwarmInBalanceStays) {
  EXPECT_FALSE(plan_move(stages(3), workers({{1, 1}, {1, 1}, {1, 1}}), {}));
  EXPECT_FALSE(plan_move(stages(3), workers({{1, 1}, {1}, {1}}), {})) << "one more at one of two weakest is no gain";
  EXPECT_FALSE(plan_move({}, {}, {}));
}

TEST(MovePlanTest, FromWhereOneIsMissedLeastToTheWeakest) {
  const auto move = plan_move(stages(3), workers({{1, 1, 1, 1}, {1}, {1, 1}}), {});
  ASSERT_TRUE(move);
  EXPECT_EQ(move->from, StageId(0));
  EXPECT_EQ(move->to, StageId(1));
  EXPECT_DOUBLE_EQ(move->rate_now, 1);
  EXPECT_DOUBLE_EQ(move->rate_then, 2);
  EXPECT_EQ(move->moves, 1u);
}

TEST(MovePlanTest, AStageThatBecameFourTimesSlowerIsHelpedUntilNoMovePays) {
  // 9 at 1 and 3 at 1/4 can make (2.25, 2.25, 2.25, 3) at best.
  std::size_t moves = 0;
  const auto rates = settle(stages(4), workers({{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0.25, 0.25, 0.25}}), &moves);
  EXPECT_GE(*std::min_element(rates.begin(), rates.end()), 2.0);
  EXPECT_GE(moves, 2u);
  EXPECT_LE(moves, 6u);
}

TEST(MovePlanTest, WorkOfAStageCounts) {
  auto loads = stages(2);
  loads[1].work = 3;
  const auto rates = settle(loads, workers({{1, 1, 1}, {1, 1}}));
  EXPECT_DOUBLE_EQ(rates[0], 2) << "and no fewer than survive the death of one";
  EXPECT_DOUBLE_EQ(rates[1], 1);
}

TEST(MovePlanTest, WhatDoesNotPayWithinTheHorizonIsNotDone) {
  const auto all = workers({{1, 1, 1}, {1}, {2}});  // while it is away: 1 as before, behind it: 2
  EXPECT_TRUE(plan_move(stages(3), all, {.horizon = 60s, .away = 30s}));
  EXPECT_FALSE(plan_move(stages(3), all, {.horizon = 30s, .away = 30s}));
}

TEST(MovePlanTest, WhileAMoverIsAwayTheRunMakesNoLess) {
  Rng rng(1);
  int moves = 0;
  for (int swarm = 0; swarm < 300; ++swarm) {
    std::vector<std::vector<double>> speeds(2 + rng.below(4));
    for (auto& stage : speeds)
      for (std::uint64_t i = 0, count = 1 + rng.below(6); i < count; ++i) stage.push_back(0.2 + 2 * rng.uniform());
    auto all = workers(speeds);
    const auto loads = stages(speeds.size());
    const auto move = plan_move(loads, all, {});
    if (!move) continue;
    ++moves;
    const auto before = stage_rates(loads, all);
    std::erase_if(all, [&](const Worker& worker) { return worker.session == move->session; });
    const auto away = stage_rates(loads, all);
    EXPECT_GE(*std::ranges::min_element(away), *std::ranges::min_element(before)) << swarm;
    EXPECT_GT(move->rate_then, move->rate_now) << swarm;
  }
  EXPECT_GT(moves, 50);
}

TEST(MovePlanTest, NeverTheLastOfAStageNorWhoMayNotNorToOrFromAClosedOne) {
  EXPECT_FALSE(plan_move(stages(2), workers({{9}, {1}}), {}));
  auto all = workers({{1, 1, 1}, {1}});
  ASSERT_TRUE(plan_move(stages(2), all, {}));
  auto loads = stages(2);
  loads[0].closed = true;
  EXPECT_FALSE(plan_move(loads, all, {}));
  loads = stages(2);
  loads[1].closed = true;
  EXPECT_FALSE(plan_move(loads, all, {}));
  loads = stages(2);
  loads[1].reached = false;
  EXPECT_FALSE(plan_move(loads, all, {})) << "nobody could give it the state";
  for (Worker& worker : all) worker.movable = false;
  EXPECT_FALSE(plan_move(stages(2), all, {}));
}

TEST(MovePlanTest, NeverTheLastThatCanBeDialledNorWhoCannotToWhereNobodyCan) {
  auto all = workers({{1, 1, 1}, {1}});
  for (const std::size_t i : {1u, 2u}) all[i].direct = false;
  const auto of_none = plan_move(stages(2), all, {});
  ASSERT_TRUE(of_none);
  EXPECT_NE(of_none->session, all[0].session) << "the others of its stage would never meet";
  all[1].movable = all[2].movable = false;
  EXPECT_FALSE(plan_move(stages(2), all, {}));
  all[1].direct = true;
  EXPECT_TRUE(plan_move(stages(2), all, {}));
  all[0].movable = false;
  all[2].movable = true;
  all[3].direct = false;
  EXPECT_FALSE(plan_move(stages(2), all, {})) << "nobody there could give it the state";
  all.pop_back();
  EXPECT_TRUE(plan_move(stages(2), all, {})) << "the first of its stage needs nobody's";
}

TEST(MovePlanTest, TheMovesThatFollowKeepOneThatCanBeDialledToo) {
  auto all = workers({{1, 1, 1, 1, 1, 1}, {1}});
  for (const std::size_t i : {2u, 3u, 4u, 5u}) all[i].direct = all[i].movable = false;
  const auto move = plan_move(stages(2), all, {});
  ASSERT_TRUE(move);
  EXPECT_EQ(move->moves, 1u);
}

TEST(MovePlanTest, AnEmptyStageThatCanBeReachedIsFilled) {
  const auto move = plan_move(stages(3), workers({{1, 1}, {1}, {}}), {});
  ASSERT_TRUE(move);
  EXPECT_EQ(move->to, StageId(2));
  EXPECT_EQ(move->from, StageId(0));
}

TEST(MovePlanTest, WhoIsNotMeasuredCountsAsTheMean) {
  auto all = workers({{4, 4}, {2}});
  all[1].speed.reset();
  const auto rates = stage_rates(stages(2), all);
  EXPECT_DOUBLE_EQ(rates[0], 4 + 3);
  EXPECT_DOUBLE_EQ(rates[1], 2);
}

TEST(MovePlanTest, NobodysWordMakesAStageStrongBeyondABound) {
  auto all = workers({{1, 1}, {1, 1000}});
  bound_speeds(all);
  EXPECT_DOUBLE_EQ(*all[3].speed, kBelieved);
  EXPECT_DOUBLE_EQ(*all[0].speed, 1);
}

TEST(MovePlanTest, NoiseMovesNobody) {
  // Each speed is within a twentieth of 1: gains stay below gain_min.
  EXPECT_FALSE(plan_move(stages(3), workers({{1.05, 1, 0.95}, {1, 0.97, 1.02}, {0.95, 0.96, 0.97}}), {}));
}

}  // namespace
}  // namespace shoal
