// How long a round may stand still, and how long it may take.
#include <gtest/gtest.h>

#include "sync/round_budget.h"
#include "sync/stall_watch.h"

namespace shoal {
namespace {

constexpr TimePoint kStart{1000s};
constexpr std::uint64_t kLargePart = std::uint64_t{1} << 30;

TEST(StallWatchTest, BytesThatMoveAreNoStallHoweverSlow) {
  StallWatch watch;
  watch.start(kStart, kLargePart);
  std::uint64_t bytes = 0;
  for (int second = 0; second <= 600; ++second) {
    watch.look(1, bytes += 10'000, 0, kStart + second * 1s);
    EXPECT_FALSE(watch.stalled(kStart + second * 1s));
  }
  EXPECT_FALSE(watch.stalled(kStart + 604s));
  EXPECT_TRUE(watch.stalled(kStart + 605s));
}

TEST(StallWatchTest, PingsAreNoMove) {
  StallWatch watch;
  watch.start(kStart, kLargePart);
  std::uint64_t bytes = 1 << 20;  // carried before the round
  for (int second = 0; second <= 5; ++second) watch.look(1, bytes += 200, 0, kStart + second * 1s);
  EXPECT_TRUE(watch.stalled(kStart + 5s));
}

TEST(StallWatchTest, ASlowLinkIsGivenTheTimeOfItsChunks) {
  StallWatch watch;
  watch.start(kStart, kLargePart);
  watch.look(1, 0, 32'768, kStart);  // 8 s a chunk
  EXPECT_EQ(watch.limit(), 32s);
  watch.look(2, 0, 1, kStart);
  EXPECT_EQ(watch.limit(), StallWatch::kCeiling);
  watch.start(kStart, kLargePart);
  watch.moved(kStart + 3s);
  EXPECT_EQ(watch.limit(), 12s) << "four times the longest gap";
}

// What little was sent makes a link look slow; a part that went with its link is still missed after the floor.
TEST(StallWatchTest, APartThatIsSmallerThanAChunkIsGivenItsOwnTime) {
  StallWatch watch;
  watch.start(kStart, 400);
  watch.look(1, 0, 1000, kStart);
  EXPECT_EQ(watch.limit(), StallWatch::kFloor);
  EXPECT_TRUE(watch.stalled(kStart + StallWatch::kFloor));
}

TEST(RoundBudgetTest, FollowsBytesAndTheSlowestRateSeen) {
  EXPECT_EQ(round_budget(0, 2, 2, 0), kRoundBudgetFloor);
  EXPECT_EQ(round_budget(800'000'000, 1, 1, 0), kRoundBudgetFloor) << "alone it sends nothing";
  EXPECT_EQ(round_bytes(800, 2, 2), 800u);
  EXPECT_EQ(round_bytes(800, 4, 4), 1200u);
  EXPECT_EQ(round_bytes(800, 4, 1), 2400u) << "the only owner gives the sum to three";
  EXPECT_EQ(round_bytes(800, 9, 8), 1500u);
  EXPECT_EQ(round_bytes(800, 2, 1), 800u);
  EXPECT_EQ(round_budget(100'000'000, 2, 2, 0), 1600s);
  EXPECT_EQ(round_budget(100'000'000, 2, 2, 1e9), 1600s) << "one fast round promises nothing";
  EXPECT_EQ(round_budget(100'000'000, 2, 2, 50'000), 4000s);
  EXPECT_EQ(round_budget(1ull << 40, 2, 2, 1), kRoundBudgetCeiling);
}

}  // namespace
}  // namespace shoal
