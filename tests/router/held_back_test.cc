// Entries that a session acknowledged and leaves out of its rounds.
#include "router/held_back.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

Session session_of(std::uint64_t n) { return {n, 1}; }

constexpr std::uint64_t kWindow = 10;

class HeldBackTest : public testing::Test {
 protected:
  // The session acknowledges commits of one target each.
  void acknowledge(std::uint64_t n, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) held.acknowledged(StageId(0), {session_of(n), first + i}, 1, now);
  }
  HeldBack::Culprits round(std::map<std::uint64_t, std::vector<std::uint64_t>> brought, StepId step = {}) {
    RoundCommit commit;
    commit.step = step;
    for (const auto& [n, serials] : brought) commit.secured.push_back({session_of(n), serials});
    return held.on_round_commit(commit, now);
  }
  HeldBack held{kWindow, 10s};
  TimePoint now{1000s};
};

TEST_F(HeldBackTest, WhoLeavesOutWhatItMustHaveSteppedIsNamed) {
  acknowledge(1, 0, 3 * kWindow + 2);
  EXPECT_TRUE(round({{1, {}}}).empty()) << "it may have contributed before it stepped them";
  EXPECT_TRUE(round({{1, {}}}).empty());
  const auto named = round({{1, {}}});
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].first, session_of(1));
  EXPECT_NE(named[0].second.find("out of 2 rounds"), std::string::npos) << named[0].second;
}

// It gets a microbatch now and then: its window is open for as long as that takes.
TEST_F(HeldBackTest, WhatMayStandInAnOpenWindowIsNotHeldBackHoweverManyRoundsPass) {
  acknowledge(1, 0, 3 * kWindow);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(round({{1, {}}}).empty());
}

TEST_F(HeldBackTest, ManyEntriesThatRoundsTakeInOrderAreAsTheyShouldBe) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    acknowledge(1, i * kWindow, kWindow);
    std::vector<std::uint64_t> serials;
    if (i >= 3)
      for (std::uint64_t k = 0; k < kWindow; ++k) serials.push_back((i - 3) * kWindow + k);
    EXPECT_TRUE(round({{1, serials}}).empty());
  }
}

TEST_F(HeldBackTest, RoundsThatItTookNoPartInAndRoundsOfAStepTellNothing) {
  acknowledge(1, 0, 100);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(round({{2, {}}}).empty());
  for (std::uint64_t i = 1; i < 10; ++i) EXPECT_TRUE(round({{1, {}}}, StepId(i)).empty());
}

TEST_F(HeldBackTest, WhatIsLostIsNotWaitedFor) {
  acknowledge(1, 0, 40);
  for (std::uint64_t i = 0; i < 40; ++i) held.forget({session_of(1), i});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(round({{1, {}}}).empty());
}

TEST_F(HeldBackTest, WhereNothingCanBeIssuedTheTimeThatOthersTookIsTheMeasure) {
  acknowledge(1, 0, 1);
  acknowledge(2, 0, 1);
  EXPECT_TRUE(held.on_full({session_of(1)}, now).empty());
  now += 100s;
  EXPECT_TRUE(held.on_full({session_of(1)}, now).empty()) << "nobody's measure is known";
  round({{2, {0}}});
  EXPECT_TRUE(held.on_full({session_of(1)}, now).empty());
  now += 1s;
  ASSERT_EQ(held.on_full({session_of(1)}, now).size(), 1u);
  EXPECT_TRUE(held.on_full({}, now).empty());
  EXPECT_TRUE(held.on_full({session_of(1)}, now).empty()) << "it begins anew";
}

}  // namespace
}  // namespace shoal
