#include "layout/layout_plan.h"

#include <gtest/gtest.h>

#include "tests/layout/shapes.h"

namespace shoal {
namespace {

TEST(LayoutPlanTest, ClimbingComesWithinFivePercentOfTheBest) {
  double worst = 1;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    const SwarmShape shape = drawn_shape(3, 7, 3, seed);
    const LayoutCost cost(shape);
    const LayoutProblem problem = problem_of(shape, cost);
    const auto starts = layout_starts(shape);
    ASSERT_TRUE(starts.ok());
    const double climbed = cost.figures(climb(problem, *starts).layout).worth;
    const auto best = best_of_all(problem, 10'000);
    ASSERT_TRUE(best);
    ASSERT_LE(climbed, best->worth * (1 + 1e-9));
    worst = std::min(worst, climbed / best->worth);
  }
  EXPECT_GE(worst, 0.95);
}

TEST(LayoutPlanTest, FastPeersGoWhereTheWorkIs) {
  SwarmShape shape = shape_of(2, {8, 4, 4});
  shape.stages[1].work = 1;
  const auto planned = plan_layout(shape);
  ASSERT_TRUE(planned.ok());
  EXPECT_TRUE(planned->is_best);
  EXPECT_EQ(planned->layout[1], planned->layout[2]);
  EXPECT_NE(planned->layout[0], planned->layout[1]);
}

TEST(LayoutPlanTest, MicrobatchesStayInARegionWhereLinesBetweenAreSlow) {
  SwarmShape shape = shape_of(2, {1, 1, 1, 1});
  shape.stages[0].forward_bytes = shape.stages[0].backward_bytes = 1e6;
  shape.regions = 2;
  shape.lines = {{0.001, 1e8}, {0.1, 1e6}, {0.1, 1e6}, {0.001, 1e8}};
  shape.peers[2].region = shape.peers[3].region = 1;
  const auto planned = plan_layout(shape);
  ASSERT_TRUE(planned.ok());
  EXPECT_NE(planned->layout[0], planned->layout[1]);
  EXPECT_NE(planned->layout[2], planned->layout[3]);
}

TEST(LayoutPlanTest, RoundsStayInARegionWhereTheyAreWhatGoesBetween) {
  SwarmShape shape = shape_of(2, {1, 1, 1, 1});
  shape.regions = 2;
  shape.lines = {{0.001, 1e8}, {0.01, 1e6}, {0.01, 1e6}, {0.001, 1e8}};
  shape.peers[2].region = shape.peers[3].region = 1;
  for (ShapeStage& stage : shape.stages) stage.round_bytes = 1e8;
  shape.round_microbatches = 10;
  const auto planned = plan_layout(shape);
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(planned->layout[0], planned->layout[1]);
  EXPECT_EQ(planned->layout[2], planned->layout[3]);
}

TEST(LayoutPlanTest, APeerServesWhatItHasTheMemoryFor) {
  SwarmShape shape = shape_of(3, {1, 1, 1, 1});
  shape.peers[0].fits = shape.peers[1].fits = {true, false, false};
  shape.peers[2].fits = {true, true, false};
  const auto planned = plan_layout(shape);
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(planned->layout, (Layout{0, 0, 1, 2}));
  const auto starts = layout_starts(shape);
  for (const Layout& start : *starts) EXPECT_EQ(start, (Layout{0, 0, 1, 2}));
}

TEST(LayoutPlanTest, WhatCannotBeLaidOutIsSaid) {
  SwarmShape shape = shape_of(3, {1, 1});
  EXPECT_EQ(plan_layout(shape).code(), ErrorCode::kInput) << "fewer peers than stages";
  shape = shape_of(2, {1, 1, 1});
  shape.peers[1].fits = {false, false};
  auto planned = plan_layout(shape);
  ASSERT_FALSE(planned.ok());
  EXPECT_NE(planned.error().message.find("\"p1\""), std::string::npos);
  for (ShapePeer& peer : shape.peers) peer.fits = {true, false};
  planned = plan_layout(shape);
  ASSERT_FALSE(planned.ok());
  EXPECT_NE(planned.error().message.find("stage 1"), std::string::npos);
}

TEST(LayoutPlanTest, ManyStagesAndPeersAreNoMatter) {
  const SwarmShape shape = drawn_shape(200, 250, 10, 1);
  const auto planned = plan_layout(shape);
  ASSERT_TRUE(planned.ok());
  EXPECT_GT(LayoutCost(shape).figures(planned->layout).rate, 0) << "every stage has somebody";
}

// A large one is climbed: its peers are all unlike.
TEST(LayoutPlanTest, ALargeSwarmIsWorthMoreThanWhatClimbingBeganWith) {
  const SwarmShape shape = drawn_shape(4, 24, 6, 3);
  const LayoutCost cost(shape);
  const auto planned = plan_layout(shape);
  ASSERT_TRUE(planned.ok());
  EXPECT_FALSE(planned->is_best);
  const auto starts = layout_starts(shape);
  for (const Layout& start : *starts) EXPECT_GE(cost.figures(planned->layout).worth, cost.figures(start).worth);
  EXPECT_EQ(plan_layout(shape)->layout, planned->layout) << "the same again";
}

}  // namespace
}  // namespace shoal
