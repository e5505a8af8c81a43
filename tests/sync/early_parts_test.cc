#include "sync/early_parts.h"

#include <gtest/gtest.h>

#include "tests/sync/sync_fixtures.h"

namespace shoal {
namespace {

constexpr std::uint64_t kBytesMax = 100;

EarlyParts::Part part_of(std::uint64_t sender, std::uint64_t round, std::size_t bytes = 10) {
  EarlyParts::Part part;
  part.from = test::session_of(sender);
  part.part.round = RoundId(round);
  part.frame = Buffer(bytes).freeze();
  return part;
}

std::vector<std::size_t> sizes_of(const std::vector<EarlyParts::Part>& parts) {
  std::vector<std::size_t> sizes;
  for (const EarlyParts::Part& part : parts) sizes.push_back(part.frame.size());
  return sizes;
}

TEST(EarlyPartsTest, KeepsOnePartASenderThatOfItsNewestRound) {
  EarlyParts early;
  early.keep(part_of(1, 3, 11), kBytesMax);
  early.keep(part_of(2, 3, 12), kBytesMax);
  early.keep(part_of(1, 4, 13), kBytesMax);
  early.keep(part_of(1, 3, 14), kBytesMax);
  early.keep(part_of(1, 4, 15), kBytesMax);
  EXPECT_EQ(early.size(), 2u);
  EXPECT_EQ(sizes_of(early.take(RoundId(3))), std::vector<std::size_t>{12});
  EXPECT_EQ(sizes_of(early.take(RoundId(4))), std::vector<std::size_t>{13}) << "a repeat changes nothing";
  EXPECT_EQ(early.size(), 0u);
}

TEST(EarlyPartsTest, DropsTheLargestFirst) {
  EarlyParts early;
  early.keep(part_of(1, 3, 30), kBytesMax);
  early.keep(part_of(2, 3, 60), kBytesMax);
  early.keep(part_of(3, 3, 30), kBytesMax);
  EXPECT_EQ(sizes_of(early.take(RoundId(3))), (std::vector<std::size_t>{30, 30}));
  early.keep(part_of(1, 4, 30), kBytesMax);
  early.keep(part_of(2, 4, kBytesMax + 1), kBytesMax);
  EXPECT_EQ(sizes_of(early.take(RoundId(4))), std::vector<std::size_t>{30}) << "itself, when it fits nowhere";
}

TEST(EarlyPartsTest, BoundsTheSenders) {
  EarlyParts early;
  for (std::uint64_t sender = 1; sender <= EarlyParts::kSendersMax + 3; ++sender)
    early.keep(part_of(sender, 1, sender == 7 ? 1 : 0), kBytesMax);
  EXPECT_EQ(early.size(), EarlyParts::kSendersMax);
  EXPECT_TRUE(sizes_of(early.take(RoundId(1))) == std::vector<std::size_t>(EarlyParts::kSendersMax, 0));
}

TEST(EarlyPartsTest, ForgetsRoundsThatAreOverAndRoundsFarAhead) {
  EarlyParts early;
  early.keep(part_of(1, 4), kBytesMax);
  early.keep(part_of(2, 5), kBytesMax);
  early.keep(part_of(3, 5 + EarlyParts::kRoundsAheadMax), kBytesMax);
  early.keep(part_of(4, 6 + EarlyParts::kRoundsAheadMax), kBytesMax);
  early.keep(part_of(5, ~std::uint64_t{0}), kBytesMax);
  EXPECT_EQ(early.take(RoundId(5)).size(), 1u);
  EXPECT_EQ(early.size(), 1u);
  early.forget_until(RoundId(5 + EarlyParts::kRoundsAheadMax));
  EXPECT_EQ(early.size(), 0u);
}

TEST(EarlyPartsTest, ASumIsNeverEarly) {
  EarlyParts early;
  EarlyParts::Part sum = part_of(1, 3);
  sum.part.phase = 1;
  early.keep(std::move(sum), kBytesMax);
  EXPECT_EQ(early.size(), 0u);
}

}  // namespace
}  // namespace shoal
