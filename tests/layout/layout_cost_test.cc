#include "layout/layout_cost.h"

#include <gtest/gtest.h>

#include "tests/layout/shapes.h"

namespace shoal {
namespace {

TEST(LayoutCostTest, TheWeakestStageBindsWhereLinesAreFree) {
  SwarmShape shape = shape_of(2, {3, 1, 2});
  shape.stages[1].work = 2;
  const LayoutStory story = LayoutCost(shape).story({0, 0, 1});
  EXPECT_DOUBLE_EQ(story.rate, 1) << "min(3 + 1, 2 / 2)";
  EXPECT_EQ(story.stage_rates, (std::vector<double>{4, 1}));
  ASSERT_EQ(story.binds.size(), 1u);
  EXPECT_EQ(story.binds[0].what, Binding::kCompute);
  EXPECT_EQ(story.binds[0].stage, 1u);
  EXPECT_DOUBLE_EQ(story.in_flight, 1.0 / 3 + 1) << "the fast one takes a third of a second, all there go to it";
  EXPECT_DOUBLE_EQ(LayoutCost(shape).figures({0, 0, 0}).rate, 0) << "a stage has nobody";
}

TEST(LayoutCostTest, InFlightIsTheRateTimesTheWay) {
  SwarmShape shape = shape_of(2, {10, 10});
  shape.stages[0].forward_bytes = 1e6;
  shape.stages[0].backward_bytes = 2e6;
  shape.regions = 2;
  shape.lines = {{}, {0.05, 1e8}, {0.05, 1e8}, {}};
  shape.peers[1].region = 1;
  shape.trainer = 1;
  const LayoutStory story = LayoutCost(shape).story({0, 1});
  EXPECT_DOUBLE_EQ(story.rate, 10);
  // To the first stage and back 0.1 s, 0.1 s each at both, 0.1 s between them and 0.03 s of bytes.
  EXPECT_NEAR(story.in_flight, 10 * 0.43, 1e-9);
  EXPECT_NEAR(story.rate_with(2.15), 5, 1e-9) << "half of them keep it half busy";
  EXPECT_NEAR(story.rate_with(100), 10, 1e-9);
}

TEST(LayoutCostTest, ALineBindsInTheDirectionThatIsFuller) {
  SwarmShape shape = shape_of(2, {10, 10});
  shape.stages[0].forward_bytes = 1e6;
  shape.stages[0].backward_bytes = 4e6;
  shape.lines = {{0, 8e6}};
  LayoutStory story = LayoutCost(shape).story({0, 1});
  EXPECT_DOUBLE_EQ(story.rate, 2);
  ASSERT_EQ(story.binds.size(), 1u);
  EXPECT_EQ(story.binds[0].what, Binding::kLine);
  EXPECT_EQ(story.binds[0].stage, 0u);
  shape.lines = {ShapeLine()};
  shape.peers[1].up = 12e6;
  story = LayoutCost(shape).story({0, 1});
  EXPECT_DOUBLE_EQ(story.rate, 3) << "its own line, gradients up";
  ASSERT_EQ(story.binds.size(), 1u);
  EXPECT_EQ(story.binds[0].what, Binding::kOwnLine);
  EXPECT_EQ(story.binds[0].stage, 1u);
}

TEST(LayoutCostTest, EachLineToEachPeerCountsSinceAnyMayBeAsked) {
  SwarmShape shape = shape_of(2, {10, 10, 10, 10});
  shape.stages[0].forward_bytes = shape.stages[0].backward_bytes = 1e6;
  shape.lines = {{0, 3e6}};
  EXPECT_DOUBLE_EQ(LayoutCost(shape).figures({0, 0, 1, 1}).rate, 12) << "four lines of three";
  EXPECT_DOUBLE_EQ(LayoutCost(shape).figures({0, 1, 1, 1}).rate, 9);
}

TEST(LayoutCostTest, PeersOfAKindAreCountedAsOneAndComeToTheSame) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SwarmShape shape = drawn_shape(3, 9, 3, seed);
    for (std::size_t peer = 0; peer < 9; ++peer) shape.peers[peer].speed = 10;
    SwarmShape unlike = shape;
    for (std::size_t peer = 0; peer < 9; ++peer) unlike.peers[peer].speed += 1e-9 * static_cast<double>(peer);
    EXPECT_EQ(kinds_of(shape), (std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
    Rng rng(seed);
    Layout layout(9);
    for (std::size_t peer = 0; peer < 9; ++peer) layout[peer] = static_cast<std::uint16_t>(peer / 3);
    rng.shuffle(layout);
    const LayoutFigures one = LayoutCost(shape).figures(layout), other = LayoutCost(unlike).figures(layout);
    EXPECT_NEAR(one.rate, other.rate, 1e-6 * one.rate);
    EXPECT_NEAR(one.in_flight, other.in_flight, 1e-6 * one.in_flight);
    EXPECT_NEAR(one.round_share, other.round_share, 1e-6);
  }
}

TEST(LayoutCostTest, ARoundIsAsLongAsDtfmSays) {
  SwarmShape shape = shape_of(1, {1, 1, 1});
  shape.regions = 2;
  shape.lines = {{0.01, 1e6}, {0.1, 5e5}, {0.1, 5e5}, {0.01, 1e6}};
  shape.peers[2].region = 1;
  shape.stages[0].round_bytes = 3e6;
  shape.round_microbatches = 20;
  LayoutStory story = LayoutCost(shape).story({0, 0, 0});
  EXPECT_DOUBLE_EQ(story.round_times[0], 2 * 2 * (0.1 + 2)) << "the one that is far from both";
  EXPECT_DOUBLE_EQ(story.rate, 3);
  EXPECT_NEAR(story.round_share, 3 * 8.4 / 60, 1e-12) << "60 microbatches of three replicas lie between two";
  shape.every_step = true;  // and 20 of them all
  story = LayoutCost(shape).story({0, 0, 0});
  EXPECT_NEAR(story.rate, 20 / 8.4, 1e-9);
  ASSERT_EQ(story.binds.size(), 1u);
  EXPECT_EQ(story.binds[0].what, Binding::kRound);
}

TEST(LayoutCostTest, WhatIsNotWorthEnoughIsKnownEarlierAndNothingElse) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SwarmShape shape = drawn_shape(3, 8, 4, seed);
    shape.every_step = seed % 4 == 0;
    if (seed % 5 == 0) shape.round_microbatches = 0;
    const LayoutCost cost(shape);
    Rng rng(seed);
    Layout layout;
    for (std::size_t peer = 0; peer < 8; ++peer) layout.push_back(static_cast<std::uint16_t>(rng.below(3)));
    const LayoutStory story = cost.story(layout);
    EXPECT_DOUBLE_EQ(cost.worth(layout, -1), story.worth) << "seed " << seed;
    EXPECT_DOUBLE_EQ(cost.worth(layout, 0.999 * story.worth), story.worth) << "seed " << seed;
    EXPECT_LE(cost.worth(layout, story.worth), story.worth) << "seed " << seed;
    EXPECT_DOUBLE_EQ(story.worth, cost.figures(layout).worth);
    double through = 0;
    for (std::size_t peer = 0; peer < 8; ++peer)
      if (layout[peer] == 1) through += story.peer_rates[peer];
    EXPECT_NEAR(through, story.rate, 1e-6 * story.rate) << "what goes through a stage is what the swarm makes";
  }
}

}  // namespace
}  // namespace shoal
