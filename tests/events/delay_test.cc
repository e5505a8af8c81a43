// The histogram of gradients' delays.
#include "events/delay.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace shoal {
namespace {

std::vector<std::uint64_t> counts_of(const DelayHistogram& histogram) {
  return {histogram.counts().begin(), histogram.counts().end()};
}

TEST(DelayTest, AnEmptyHistogramHasNoCountsAndMeanZero) {
  const DelayHistogram histogram;
  EXPECT_TRUE(histogram.counts().empty());
  EXPECT_EQ(histogram.total(), 0U);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(DelayTest, WeighsEachDelayByItsTargets) {
  DelayHistogram histogram;
  histogram.add(0, 300);
  histogram.add(2, 100);
  histogram.add(0, 100);
  EXPECT_EQ(counts_of(histogram), (std::vector<std::uint64_t>{400, 0, 100}));
  EXPECT_EQ(histogram.total(), 500U);
  EXPECT_DOUBLE_EQ(histogram.mean(), 0.4);
}

TEST(DelayTest, AGradientWithoutTargetsLeavesNoTrace) {
  DelayHistogram histogram;
  histogram.add(5, 0);
  EXPECT_EQ(histogram, DelayHistogram());
}

TEST(DelayTest, TheLastBinIsOpen) {
  DelayHistogram histogram;
  histogram.add(DelayHistogram::kBins - 2, 1);
  EXPECT_EQ(histogram.counts().size(), DelayHistogram::kBins - 1);
  histogram.add(DelayHistogram::kBins - 1, 1);
  histogram.add(DelayHistogram::kBins, 1);
  histogram.add(std::numeric_limits<std::uint64_t>::max(), 1);
  EXPECT_EQ(histogram.counts().size(), DelayHistogram::kBins);
  EXPECT_EQ(histogram.counts().back(), 3U);
}

TEST(DelayTest, MergingAddsTheBins) {
  DelayHistogram left, right, both;
  left.add(0, 3), left.add(7, 2);
  right.add(1, 5), right.add(7, 1);
  both.add(0, 3), both.add(1, 5), both.add(7, 3);
  left.merge(right);
  EXPECT_EQ(left, both);
}

TEST(DelayTest, ComesBackFromItsCounts) {
  DelayHistogram histogram;
  histogram.add(0, 3), histogram.add(4, 9);
  EXPECT_EQ(DelayHistogram::of(histogram.counts()), histogram);
  const std::vector<std::uint64_t> longer(DelayHistogram::kBins + 2, 1);  // of a longer list nothing is lost
  EXPECT_EQ(DelayHistogram::of(longer).counts().back(), 3U);
  EXPECT_EQ(DelayHistogram::of(longer).total(), longer.size());
}

TEST(DelayTest, CountsDoNotWrap) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  DelayHistogram histogram;
  histogram.add(1, kMost), histogram.add(1, 1), histogram.add(3, kMost);
  EXPECT_EQ(histogram.counts()[1], kMost);
  EXPECT_EQ(histogram.total(), kMost);
  EXPECT_DOUBLE_EQ(histogram.mean(), 2);
}

}  // namespace
}  // namespace shoal
