#include "bench/rebalance_world.h"

#include <gmock/gmock.h>

namespace shoal {
namespace {

SwarmTrace trace_of(std::string_view text, std::uint64_t seed = 1) {
  const auto trace = parse_trace("trace", text, seed);
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return trace.ok() ? *trace : SwarmTrace{};
}

// `count` nodes join at once, and the named ones go at these seconds.
SwarmTrace swarm(std::size_t count, const std::vector<std::pair<int, int>>& gone, int seconds) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "0,add,node" + std::to_string(i) + "\n";
  for (const auto& [at, node] : gone) text += std::to_string(1000 * at) + ",remove,node" + std::to_string(node) + "\n";
  text += std::to_string(1000 * seconds) + ",remove,nobody\n";
  return trace_of(text);
}

RebalanceFigures run(const SwarmTrace& trace, MovePlanner planner, std::uint16_t stages = 3, double spread = 0,
                     std::uint64_t seed = 1) {
  RebalanceWorld world;
  world.planner = planner;
  world.period = 60s;
  world.stages = stages;
  world.spread = spread;
  world.seed = seed;
  return run_rebalance(trace, world);
}

TEST(SwarmTraceTest, ReadsBothShapes) {
  const SwarmTrace named = trace_of("0,add,a\n0,add,b\r\n1500, remove, a\n");
  ASSERT_EQ(named.events.size(), 3u);
  EXPECT_EQ(named.events[2].node, named.events[0].node);
  EXPECT_FALSE(named.events[2].joins);
  EXPECT_DOUBLE_EQ(named.seconds, 1.5);
  const SwarmTrace counted = trace_of("2021-12-31, 23:59:50, 3\n2022-01-01, 00:00:10, 5\n2022-01-01, 00:00:00, 1\n");
  EXPECT_DOUBLE_EQ(counted.seconds, 20) << "its lines are sorted, and a year ends within";
  int there = 0;
  std::vector<int> counts;
  for (const TraceEvent& event : counted.events) counts.push_back(there += event.joins ? 1 : -1);
  EXPECT_THAT(counts, testing::ElementsAre(1, 2, 3, 2, 1, 2, 3, 4, 5));
}

TEST(SwarmTraceTest, NamesALineThatItCannotRead) {
  for (const char* text : {"0,add\n", "0,joins,a\n", "-1,add,a\n", "2021-13-01, 00:00:00, 3\n",
                           "2021-12-01, 00:00, 3\n", "2021-12-01, 00:00:00, many\n"}) {
    const auto trace = parse_trace("a.csv", std::string("0,add,z\n") + text, 1);
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_EQ(trace.code(), ErrorCode::kMalformed);
    EXPECT_THAT(trace.error().message, testing::HasSubstr("a.csv, line 2"));
  }
  EXPECT_EQ(parse_trace("a.csv", "", 1).code(), ErrorCode::kInput);
}

TEST(RebalanceWorldTest, WhereNobodyGoesNobodyMoves) {
  const SwarmTrace trace = swarm(9, {}, 3600);
  for (const MovePlanner planner : {MovePlanner::kNone, MovePlanner::kSwarm, MovePlanner::kShoal}) {
    const RebalanceFigures figures = run(trace, planner);
    EXPECT_EQ(figures.moves, 0u);
    EXPECT_NEAR(figures.mean_share, 1 - 30.0 / 3600, 1e-3) << "all but the start";
  }
}

TEST(RebalanceWorldTest, AStageThatLostItsPeersIsHelped) {
  const SwarmTrace trace = swarm(9, {{600, 0}, {600, 3}}, 3600);  // two of stage 0: they go round the stages
  EXPECT_NEAR(run(trace, MovePlanner::kNone).last_hour, (600 * 3 + 3000 * 1) / (600 * 3 + 3000 * 2.0), 0.03);
  const RebalanceFigures moved = run(trace, MovePlanner::kShoal);
  EXPECT_EQ(moved.moves, 1u);
  EXPECT_GT(moved.last_hour, 0.95);
}

TEST(RebalanceWorldTest, NobodyGoesToAndFroInAHundredSwarmsOfUnlikePeers) {
  const SwarmTrace trace = swarm(16, {}, 2 * 3600);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const RebalanceFigures figures = run(trace, MovePlanner::kShoal, 4, 0.7, seed);
    EXPECT_LE(figures.moves, 12u) << seed;
    EXPECT_GE(figures.mean_share, run(trace, MovePlanner::kNone, 4, 0.7, seed).mean_share - 0.01) << seed;
  }
}

TEST(RebalanceWorldTest, TheSameSeedGivesTheSame) {
  const SwarmTrace trace = swarm(12, {{100, 1}, {500, 2}, {900, 3}}, 3600);
  EXPECT_EQ(run(trace, MovePlanner::kShoal, 4, 0.5, 7).mean_share,
            run(trace, MovePlanner::kShoal, 4, 0.5, 7).mean_share);
}

}  // namespace
}  // namespace shoal
