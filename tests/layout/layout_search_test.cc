#include "layout/layout_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace shoal {
namespace {

LayoutProblem counting(std::uint16_t stages, std::vector<std::size_t> kinds, std::set<Layout>& seen) {
  return {.stages = stages, .kinds = std::move(kinds), .worth = [&seen](const Layout& layout, double) {
            seen.insert(layout);
            return static_cast<double>(seen.size());
          }};
}

TEST(LayoutSearchTest, LooksAtEachLayoutOnce) {
  std::set<Layout> seen;
  auto best = best_of_all(counting(2, {0, 1, 2}, seen), 1000);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->asked, 6u) << "2^3 without those that leave a stage empty";
  EXPECT_EQ(seen.size(), 6u);
  seen.clear();
  best = best_of_all(counting(2, {0, 0, 0, 0}, seen), 1000);
  EXPECT_EQ(best->asked, 3u) << "one, two or three of a kind";
  seen.clear();
  LayoutProblem groups = counting(2, {0, 1, 2, 3}, seen);
  groups.sizes_stay = true;
  EXPECT_EQ(best_of_all(groups, 1000)->asked, 6u) << "4 over 2";
  groups.stages_alike = true;
  EXPECT_EQ(best_of_all(groups, 1000)->asked, 3u);
  EXPECT_FALSE(best_of_all(groups, 2)) << "more than may be looked at";
  groups.fits = [](std::size_t, std::uint16_t stage) { return stage == 0; };
  EXPECT_FALSE(best_of_all(groups, 1000)) << "there is none";
}

TEST(LayoutSearchTest, AlikeStagesLoseNoLayout) {
  // 2 + 2 + 2 of three kinds over three stages of two.
  std::set<Layout> seen, all;
  LayoutProblem problem = counting(3, {0, 0, 1, 1, 2, 2}, seen);
  problem.sizes_stay = true;
  const auto form = [](const Layout& layout) {
    std::multiset<std::multiset<int>> groups;
    for (std::uint16_t stage = 0; stage < 3; ++stage) {
      std::multiset<int> kinds;
      for (std::size_t peer = 0; peer < 6; ++peer)
        if (layout[peer] == stage) kinds.insert(static_cast<int>(peer / 2));
      groups.insert(kinds);
    }
    return groups;
  };
  std::set<std::multiset<std::multiset<int>>> forms, forms_of_alike;
  ASSERT_TRUE(best_of_all(problem, 1000));
  for (const Layout& layout : seen) forms.insert(form(layout));
  seen.clear();
  problem.stages_alike = true;
  ASSERT_TRUE(best_of_all(problem, 1000));
  for (const Layout& layout : seen) forms_of_alike.insert(form(layout));
  EXPECT_EQ(forms, forms_of_alike);
  EXPECT_EQ(forms.size(), 5u);
}

TEST(LayoutSearchTest, ClimbsToWhatItIsWorthAndNoFurtherThanItMay) {
  // The wanted layout is worth most, and each peer that stands right a little more.
  const Layout wanted = {2, 0, 1, 1, 0, 2, 2, 0};
  LayoutProblem problem{
      .stages = 3, .kinds = {0, 1, 2, 3, 4, 5, 6, 7}, .worth = [&wanted](const Layout& layout, double) {
        double right = 1;
        for (std::size_t peer = 0; peer < layout.size(); ++peer) right += layout[peer] == wanted[peer];
        return right;
      }};
  const FoundLayout found = climb(problem, {{0, 0, 0, 0, 1, 1, 2, 2}});
  EXPECT_EQ(found.layout, wanted);
  EXPECT_EQ(found.layout, climb(problem, {{0, 0, 0, 0, 1, 1, 2, 2}}).layout) << "the same again";
  EXPECT_LE(climb(problem, {{0, 0, 0, 0, 1, 1, 2, 2}}, {.asked_max = 10}).asked, 11u);
  problem.fits = [](std::size_t peer, std::uint16_t stage) { return peer != 0 || stage != 2; };
  EXPECT_NE(climb(problem, {{0, 0, 0, 0, 1, 1, 2, 2}}).layout[0], 2);
  problem.fits = {};
  problem.sizes_stay = true;
  const Layout stayed = climb(problem, {{0, 0, 0, 0, 1, 1, 2, 2}}).layout;
  EXPECT_EQ(std::ranges::count(stayed, 0), 4);
  EXPECT_EQ(std::ranges::count(stayed, 1), 2);
}

TEST(LayoutSearchTest, NoStageIsLeftEmpty) {
  LayoutProblem problem{.stages = 2, .kinds = {0, 1}, .worth = [](const Layout& layout, double) {
                          return 1.0 + (layout[0] == 0) + (layout[1] == 0);
                        }};
  const Layout found = climb(problem, {{0, 1}}).layout;
  EXPECT_NE(found[0], found[1]);
}

}  // namespace
}  // namespace shoal
