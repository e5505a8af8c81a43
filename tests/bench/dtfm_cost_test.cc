#include "bench/dtfm_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace shoal {
namespace {

const DtfmCase& named(const std::vector<DtfmCase>& cases, const std::string& name) {
  return *std::ranges::find(cases, name, &DtfmCase::name);
}

// Devices one after the other: each region's to all groups in turn.
Layout striped(const DtfmCase& of) {
  Layout layout;
  for (std::size_t device = 0; device < of.shape.peers.size(); ++device)
    layout.push_back(static_cast<std::uint16_t>(device % of.groups));
  return layout;
}

TEST(DtfmCostTest, StripesOverTheWorldCostWhatIsWorkedOutByHand) {
  const std::vector<DtfmCase> cases = dtfm_cases(CaseSize::kFull);
  const DtfmCase& world = named(cases, "world");
  const DtfmCost cost = dtfm_cost(world.shape, world.groups, striped(world));
  // Seven hops inside regions there and back, 5 ms and 0.4713 GB at 2 Gb/s.
  EXPECT_NEAR(cost.pipe, 2 * 7 * (0.005 + kDtfmActivationBytes / 250e6), 1e-9);
  EXPECT_NEAR(cost.total(), 49.22, 0.01) << "each group has one device of each region";
  EXPECT_NEAR(kDtfmActivationBytes, 0.4713e9, 1e5);
  EXPECT_DOUBLE_EQ(kDtfmGradientBytes, 0.65e9);
}

// The shortest way and the best pairs, against every order of the groups and every pairing.
TEST(DtfmCostTest, IsTheLeastOverAllOrdersAndPairs) {
  const std::vector<DtfmCase> cases = dtfm_cases(CaseSize::kSmall);
  const DtfmCase& world = named(cases, "world");
  Rng rng(7);
  for (int drawn = 0; drawn < 5; ++drawn) {
    const Layout layout = drawn_layout(16, 4, rng);
    std::vector<std::vector<std::size_t>> groups(4);
    for (std::size_t device = 0; device < 16; ++device) groups[layout[device]].push_back(device);
    const auto pairs = [&](const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
      std::vector<std::size_t> order = {0, 1, 2, 3};
      double best = kUnbounded;
      do {
        double longest = 0;
        for (std::size_t i = 0; i < 4; ++i) {
          const ShapeLine& line =
              world.shape.line(world.shape.peers[a[i]].region, world.shape.peers[b[order[i]]].region);
          longest = std::max(longest, line.delay + kDtfmActivationBytes / line.rate);
        }
        best = std::min(best, longest);
      } while (std::next_permutation(order.begin(), order.end()));
      return best;
    };
    std::vector<std::size_t> way = {0, 1, 2, 3};
    double shortest = kUnbounded;
    do {
      double length = 0;
      for (std::size_t i = 1; i < 4; ++i) length += pairs(groups[way[i - 1]], groups[way[i]]);
      shortest = std::min(shortest, length);
    } while (std::next_permutation(way.begin(), way.end()));
    const DtfmCost cost = dtfm_cost(world.shape, 4, layout);
    EXPECT_NEAR(cost.pipe, 2 * shortest, 1e-9);
    EXPECT_LE(cost.total(), dtfm_cost_as_drawn(world.shape, 4, layout).total() + 1e-9);
  }
}

TEST(DtfmCostTest, ClimbingIsWithinFivePercentOfTheBest) {
  for (const DtfmCase& of : dtfm_cases(CaseSize::kSmall)) {
    if (of.name == "world" || of.name == "spot") continue;  // many layouts: `shoal-bench layout` has them
    const FoundLayout found =
        climb(dtfm_problem(of.shape, of.groups), dtfm_starts(of.shape, of.groups, 3, 1), {.kicks = 8});
    LayoutProblem exact = dtfm_problem(of.shape, of.groups);
    exact.worth = [&](const Layout& layout, double) { return -dtfm_cost(of.shape, of.groups, layout).total(); };
    const auto best = best_of_all(exact, 100'000);
    ASSERT_TRUE(best) << of.name;
    const double cost = dtfm_cost(of.shape, of.groups, found.layout).total();
    EXPECT_LE(cost, -best->worth * 1.05) << of.name;
    EXPECT_GE(cost, -best->worth * (1 - 1e-9)) << of.name;
  }
}

TEST(DtfmCostTest, TheCasesHaveWhatThePaperSays) {
  const std::vector<DtfmCase> cases = dtfm_cases(CaseSize::kFull);
  ASSERT_EQ(cases.size(), 5u);
  for (const DtfmCase& of : cases) {
    EXPECT_EQ(of.shape.peers.size(), 64u) << of.name;
    EXPECT_EQ(of.groups, 8u);
    for (std::size_t a = 0; a < of.shape.regions; ++a)
      for (std::size_t b = 0; b < of.shape.regions; ++b) {
        EXPECT_EQ(of.shape.line(a, b).rate, of.shape.line(b, a).rate);
        EXPECT_GT(of.shape.line(a, b).rate, 0) << of.name << " " << a << " " << b;
        EXPECT_LT(of.shape.line(a, b).rate, kUnbounded) << of.name << " " << a << " " << b;
      }
  }
  EXPECT_EQ(named(cases, "world").shape.line(5, 4).delay, 0.238) << "London and Seoul";
}

}  // namespace
}  // namespace shoal
