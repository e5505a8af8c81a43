// The price list against every training that it is from.
#include "runtime/plan/delay_price.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace shoal {
namespace {

// `price` as measured, ln of the ratio of losses; docs/RESULTS.md says of which trainings.
struct TrainedCell {
  double steps, targets, look_ahead, delay;
  double price;
};
// clang-format off
constexpr TrainedCell kTrained[] = {
    {150, 256, 0, 0.5, 0.0079},  // width 64, seed 1337
    {150, 256, 0, 1, 0.1803},  // width 64, seed 1337
    {150, 256, 0, 2, 0.1878},  // width 64, seed 1337
    {150, 256, 0, 4, 0.2324},  // width 64, seed 1337
    {150, 256, 1, 0.5, -0.0044},  // width 64, seed 1337
    {150, 1024, 1, 0.5, 0.0042},  // width 64, seed 1337
    {150, 256, 1, 1, 0.0275},  // width 128, seed 1337
    {150, 256, 1, 1, 0.0529},  // width 64, seed 2
    {150, 1024, 1, 1, 0.0550},  // width 128, seed 1337
    {150, 256, 1, 1, 0.0604},  // width 64, seed 1337
    {150, 1024, 1, 1, 0.0861},  // width 64, seed 1337
    {150, 256, 1, 1, 0.0942},  // width 256, seed 1337
    {150, 256, 1, 2, 0.1921},  // width 64, seed 1337
    {150, 1024, 1, 2, 0.2123},  // width 64, seed 1337
    {150, 256, 1, 4, 0.1930},  // width 64, seed 2
    {150, 256, 1, 4, 0.2193},  // width 128, seed 1337
    {150, 256, 1, 4, 0.2322},  // width 64, seed 1337
    {150, 1024, 1, 4, 0.2490},  // width 64, seed 1337
    {150, 256, 1, 4, 0.2550},  // width 256, seed 1337
    {150, 256, 1, 8, 0.2323},  // width 64, seed 1337
    {150, 1024, 1, 8, 0.2686},  // width 64, seed 1337
    {380, 1024, 1, 1, 0.0044},  // width 256, seed 1337
    {380, 1024, 1, 1.5, 0.0740},  // width 256, seed 1337
    {380, 1024, 1, 4, 0.1723},  // width 256, seed 1337
    {400, 256, 0, 0.5, 0.0072},  // width 64, seed 1337
    {400, 256, 0, 1, 0.0307},  // width 64, seed 1337
    {400, 1024, 0, 1, 0.0580},  // width 64, seed 1337
    {400, 1024, 0, 2, 0.1723},  // width 64, seed 1337
    {400, 256, 0, 2, 0.2063},  // width 64, seed 1337
    {400, 256, 0, 4, 0.2281},  // width 64, seed 1337
    {400, 256, 1, 0.5, 0.0006},  // width 64, seed 1337
    {400, 256, 1, 0.5, 0.0019},  // width 256, seed 1337
    {400, 256, 1, 0.5, 0.0019},  // width 128, seed 1337
    {400, 1024, 1, 0.5, 0.0213},  // width 64, seed 1337
    {400, 256, 1, 1, 0.0062},  // width 64, seed 2
    {400, 256, 1, 1, 0.0094},  // width 64, seed 1337
    {400, 256, 1, 1, 0.0131},  // width 128, seed 1337
    {400, 1024, 1, 1, 0.0302},  // width 64, seed 2
    {400, 256, 1, 1, 0.0414},  // width 256, seed 1337
    {400, 1024, 1, 1, 0.0430},  // width 64, seed 1337
    {400, 1024, 1, 1, 0.0495},  // width 128, seed 1337
    {400, 256, 1, 2, 0.0742},  // width 128, seed 1337
    {400, 1024, 1, 2, 0.1033},  // width 64, seed 2
    {400, 256, 1, 2, 0.1116},  // width 256, seed 1337
    {400, 256, 1, 2, 0.1196},  // width 64, seed 1337
    {400, 1024, 1, 2, 0.1247},  // width 128, seed 1337
    {400, 1024, 1, 2, 0.1357},  // width 64, seed 1337
    {400, 256, 1, 4, 0.1877},  // width 256, seed 1337
    {400, 256, 1, 4, 0.1892},  // width 64, seed 2
    {400, 256, 1, 4, 0.2019},  // width 128, seed 1337
    {400, 256, 1, 4, 0.2121},  // width 64, seed 1337
    {400, 1024, 1, 4, 0.2525},  // width 64, seed 1337
    {400, 256, 1, 8, 0.2488},  // width 64, seed 1337
    {400, 1024, 1, 8, 0.3424},  // width 64, seed 1337
    {1000, 256, 0, 1, 0.0378},  // width 64, seed 1337
    {1000, 256, 0, 4, 0.1711},  // width 64, seed 1337
    {1000, 256, 1, 0.5, 0.0027},  // width 64, seed 1337
    {1000, 2816, 1, 0.5, 0.0325},  // width 64, seed 1337
    {1000, 256, 1, 1, 0.0052},  // width 64, seed 2
    {1000, 256, 1, 1, 0.0219},  // width 64, seed 1337
    {1000, 2816, 1, 1, 0.0728},  // width 64, seed 1337
    {1000, 256, 1, 2, 0.0705},  // width 64, seed 1337
    {1000, 2816, 1, 2, 0.2188},  // width 64, seed 1337
    {1000, 256, 1, 4, 0.1309},  // width 64, seed 2
    {1000, 256, 1, 4, 0.1544},  // width 64, seed 1337
    {1000, 2816, 1, 4, 0.2870},  // width 64, seed 1337
    {1000, 256, 1, 8, 0.2059},  // width 64, seed 1337
    {2000, 256, 1, 1, 0.0240},  // width 64, seed 1337
    {2000, 256, 1, 4, 0.1655},  // width 64, seed 1337
};
// clang-format on

double priced(const TrainedCell& cell) {
  return delay_price(cell.delay, cell.look_ahead, {.steps = cell.steps, .targets = cell.targets});
}

constexpr LateRun kShortRun{.steps = 400, .targets = 256};

TEST(DelayPriceTest, IsWithinHalfAgainOfWhatWasMeasured) {
  int beyond = 0;
  for (const TrainedCell& cell : kTrained) {
    if (cell.price < 0.01) continue;
    const double ratio = priced(cell) / cell.price;
    if (ratio >= 1 / 1.5 && ratio <= 1.5) continue;
    ++beyond;
    EXPECT_EQ(cell.delay, 1) << "after " << cell.steps << ": " << ratio;
    EXPECT_LT(std::abs(ratio - 1) * cell.price, 0.04) << "after " << cell.steps << ": " << ratio;
  }
  EXPECT_LE(beyond, 2) << "where the price begins to rise steeply, widths and seeds are apart by as much";
}

TEST(DelayPriceTest, GrowsWithTheDelayAndBeyondWhatWasMeasured) {
  for (const double steps : {0.0, 10.0, 150.0, 260.0, 400.0, 700.0, 1000.0, 1e9}) {
    for (const double targets : {1.0, 256.0, 700.0, 2816.0, 1e6}) {
      for (const double ahead : {0.0, 0.5, 1.0, 4.0}) {
        const LateRun run{steps, targets};
        EXPECT_EQ(delay_price(0, ahead, run), 0) << ahead;
        double last = 0;
        for (double delay = 0.125; delay <= 16; delay += 0.125) {
          EXPECT_GT(delay_price(delay, ahead, run), last) << delay;
          last = delay_price(delay, ahead, run);
        }
      }
    }
  }
  const auto price = [](double delay) { return delay_price(delay, 1, kShortRun); };
  EXPECT_NEAR(price(16) - price(12), price(8) - price(4), 1e-12);
  EXPECT_NEAR(price(0.75), (price(0.5) + price(1)) / 2, 1e-12);
}

TEST(DelayPriceTest, LiesBetweenThoseOfShorterAndLongerRunsAndOfSmallerAndLargerSteps) {
  const auto price = [](double steps, double targets) { return delay_price(2, 1, {steps, targets}); };
  EXPECT_NEAR(price(std::sqrt(400.0 * 1000.0), 256), (price(400, 256) + price(1000, 256)) / 2, 1e-12);
  EXPECT_NEAR(price(400, 512), (price(400, 256) + price(400, 1024)) / 2, 1e-12);
  EXPECT_EQ(price(20, 256), price(150, 256)) << "shorter ones were not measured";
  EXPECT_EQ(price(1e6, 256), price(1000, 256)) << "nor longer ones";
  EXPECT_EQ(price(0, 256), price(1000, 256)) << "no end is known";
  EXPECT_EQ(price(400, 1), price(400, 256));
  EXPECT_EQ(price(400, 1e6), price(400, 1024));
  EXPECT_LT(price(1000, 256), price(400, 256));
  EXPECT_LT(price(400, 256), price(400, 1024));
}

TEST(DelayPriceTest, LookAheadMakesItCheaperAndMoreThanOneUpdateAsOne) {
  for (const double delay : {0.5, 1.0, 2.0, 4.0}) {
    const auto price = [&](double look_ahead) { return delay_price(delay, look_ahead, kShortRun); };
    EXPECT_LT(price(1), price(0)) << delay;
    EXPECT_EQ(price(4), price(1)) << "more was not measured";
    EXPECT_NEAR(price(0.5), (price(0) + price(1)) / 2, 1e-12);
  }
}

}  // namespace
}  // namespace shoal
