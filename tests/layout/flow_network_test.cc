#include "layout/flow_network.h"

#include <gtest/gtest.h>

#include "common/rng.h"

namespace shoal {
namespace {

std::vector<FlowNetwork::Part> sent(FlowNetwork& network, std::size_t sink, double most = FlowNetwork::kNoLimit,
                                    const FlowNetwork::Wanted& wanted = {}) {
  std::vector<FlowNetwork::Part> parts;
  network.send(0, sink, most, wanted, [&](const FlowNetwork::Part& part) { parts.push_back(part); });
  return parts;
}
double total(const std::vector<FlowNetwork::Part>& parts) {
  double flow = 0;
  for (const FlowNetwork::Part& part : parts) flow += part.flow;
  return flow;
}
double cost(const std::vector<FlowNetwork::Part>& parts) {
  double cost = 0;
  for (const FlowNetwork::Part& part : parts) cost += part.flow * part.unit_cost;
  return cost;
}

TEST(FlowNetworkTest, TheCheapWayIsFilledFirstAndADearerOneTakesTheRest) {
  FlowNetwork network(4);
  const std::size_t cheap = network.add(0, 1, 2, 1), dear = network.add(0, 2, 5, 3);
  network.add(1, 3, 9, 0);
  network.add(2, 3, 4, 0);
  const auto parts = sent(network, 3);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_DOUBLE_EQ(parts[0].flow, 2);
  EXPECT_DOUBLE_EQ(parts[0].unit_cost, 1);
  EXPECT_DOUBLE_EQ(parts[1].flow, 4);
  EXPECT_DOUBLE_EQ(parts[1].unit_cost, 3);
  EXPECT_DOUBLE_EQ(network.flow(cheap), 2);
  EXPECT_DOUBLE_EQ(network.flow(dear), 4);
  const std::vector<bool> reached = network.reached(0);
  EXPECT_FALSE(reached[1]);
  EXPECT_TRUE(reached[2]) << "the arc behind it binds";
  EXPECT_FALSE(reached[3]);
}

TEST(FlowNetworkTest, AWayThatWasTakenGivesWay) {
  // The cheapest way 0-1-2-3 blocks both others; the most goes over 0-1-3 and 0-2-3.
  FlowNetwork network(4);
  network.add(0, 1, 1, 0);
  network.add(0, 2, 1, 5);
  const std::size_t across = network.add(1, 2, 1, 0);
  network.add(1, 3, 1, 5);
  network.add(2, 3, 1, 0);
  const auto parts = sent(network, 3);
  EXPECT_DOUBLE_EQ(total(parts), 2);
  EXPECT_DOUBLE_EQ(cost(parts), 10);
  EXPECT_DOUBLE_EQ(network.flow(across), 0);
}

TEST(FlowNetworkTest, NoMoreThanIsAskedFor) {
  FlowNetwork network(2);
  network.add(0, 1, 10, 2);
  EXPECT_DOUBLE_EQ(total(sent(network, 1, 3)), 3);
  FlowNetwork apart(3);
  apart.add(0, 1, 1, 0);
  EXPECT_TRUE(sent(apart, 2).empty());
  FlowNetwork both(2);
  both.add(0, 1, 1, 2);
  both.add(0, 1, 1, 3);
  EXPECT_DOUBLE_EQ(total(sent(both, 1, FlowNetwork::kNoLimit, [](double dear) { return dear < 2.5; })), 1);
}

// Every set of arcs that parts source and sink carries at least the flow, and one of them exactly that.
TEST(FlowNetworkTest, IsTheLeastCut) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    constexpr std::size_t kNodes = 8;
    struct Arc {
      std::size_t from, to;
      double room;
    };
    std::vector<Arc> arcs;
    FlowNetwork network(kNodes);
    for (int i = 0; i < 20; ++i) {
      const Arc arc{rng.below(kNodes), rng.below(kNodes), 10 * rng.uniform()};
      if (arc.from == arc.to) continue;
      arcs.push_back(arc);
      network.add(arc.from, arc.to, arc.room, rng.uniform());
    }
    double least = FlowNetwork::kNoLimit;
    for (std::size_t side = 0; side < 1u << kNodes; ++side) {
      if (!(side & 1) || (side >> (kNodes - 1) & 1)) continue;  // from node 0 to the last one
      double cut = 0;
      for (const Arc& arc : arcs)
        if ((side >> arc.from & 1) && !(side >> arc.to & 1)) cut += arc.room;
      least = std::min(least, cut);
    }
    EXPECT_NEAR(total(sent(network, kNodes - 1)), least, 1e-8) << "seed " << seed;
  }
}

}  // namespace
}  // namespace shoal
