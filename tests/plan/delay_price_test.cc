// The price list against every training that it is from.
#include "runtime/plan/delay_price.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace shoal {
namespace {

// `price` as measured, ln of the ratio of losses; docs/RESULTS.md says of which trainings.
struct TrainedCell {
  double steps, look_ahead, delay;
  double price;
};
// clang-format off
constexpr TrainedCell kTrained[] = {
    {150, 0, 0.5, 0.0079},  // width 64, 256 targets a step, seed 1337
    {150, 0, 1, 0.1803},  // width 64, 256 targets a step, seed 1337
    {150, 0, 2, 0.1878},  // width 64, 256 targets a step, seed 1337
    {150, 0, 4, 0.2324},  // width 64, 256 targets a step, seed 1337
    {150, 1, 0.5, -0.0044},  // width 64, 256 targets a step, seed 1337
    {150, 1, 0.5, 0.0042},  // width 64, 1024 targets a step, seed 1337
    {150, 1, 1, 0.0275},  // width 128, 256 targets a step, seed 1337
    {150, 1, 1, 0.0529},  // width 64, 256 targets a step, seed 2
    {150, 1, 1, 0.0604},  // width 64, 256 targets a step, seed 1337
    {150, 1, 1, 0.0861},  // width 64, 1024 targets a step, seed 1337
    {150, 1, 1, 0.0942},  // width 256, 256 targets a step, seed 1337
    {150, 1, 2, 0.1921},  // width 64, 256 targets a step, seed 1337
    {150, 1, 2, 0.2123},  // width 64, 1024 targets a step, seed 1337
    {150, 1, 4, 0.1930},  // width 64, 256 targets a step, seed 2
    {150, 1, 4, 0.2193},  // width 128, 256 targets a step, seed 1337
    {150, 1, 4, 0.2322},  // width 64, 256 targets a step, seed 1337
    {150, 1, 4, 0.2490},  // width 64, 1024 targets a step, seed 1337
    {150, 1, 4, 0.2550},  // width 256, 256 targets a step, seed 1337
    {150, 1, 8, 0.2323},  // width 64, 256 targets a step, seed 1337
    {380, 1, 1, 0.0044},  // width 256, 1024 targets a step, seed 1337
    {380, 1, 1.5, 0.0740},  // width 256, 1024 targets a step, seed 1337
    {380, 1, 4, 0.1723},  // width 256, 1024 targets a step, seed 1337
    {400, 0, 0.5, 0.0072},  // width 64, 256 targets a step, seed 1337
    {400, 0, 1, 0.0307},  // width 64, 256 targets a step, seed 1337
    {400, 0, 2, 0.2063},  // width 64, 256 targets a step, seed 1337
    {400, 0, 4, 0.2281},  // width 64, 256 targets a step, seed 1337
    {400, 1, 0.5, 0.0006},  // width 64, 256 targets a step, seed 1337
    {400, 1, 0.5, 0.0019},  // width 256, 256 targets a step, seed 1337
    {400, 1, 0.5, 0.0019},  // width 128, 256 targets a step, seed 1337
    {400, 1, 0.5, 0.0213},  // width 64, 1024 targets a step, seed 1337
    {400, 1, 1, 0.0062},  // width 64, 256 targets a step, seed 2
    {400, 1, 1, 0.0094},  // width 64, 256 targets a step, seed 1337
    {400, 1, 1, 0.0131},  // width 128, 256 targets a step, seed 1337
    {400, 1, 1, 0.0302},  // width 64, 1024 targets a step, seed 2
    {400, 1, 1, 0.0414},  // width 256, 256 targets a step, seed 1337
    {400, 1, 1, 0.0430},  // width 64, 1024 targets a step, seed 1337
    {400, 1, 1, 0.0495},  // width 128, 1024 targets a step, seed 1337
    {400, 1, 2, 0.0742},  // width 128, 256 targets a step, seed 1337
    {400, 1, 2, 0.1033},  // width 64, 1024 targets a step, seed 2
    {400, 1, 2, 0.1116},  // width 256, 256 targets a step, seed 1337
    {400, 1, 2, 0.1196},  // width 64, 256 targets a step, seed 1337
    {400, 1, 2, 0.1247},  // width 128, 1024 targets a step, seed 1337
    {400, 1, 2, 0.1357},  // width 64, 1024 targets a step, seed 1337
    {400, 1, 4, 0.1877},  // width 256, 256 targets a step, seed 1337
    {400, 1, 4, 0.1892},  // width 64, 256 targets a step, seed 2
    {400, 1, 4, 0.2019},  // width 128, 256 targets a step, seed 1337
    {400, 1, 4, 0.2121},  // width 64, 256 targets a step, seed 1337
    {400, 1, 4, 0.2525},  // width 64, 1024 targets a step, seed 1337
    {400, 1, 8, 0.2488},  // width 64, 256 targets a step, seed 1337
    {400, 1, 8, 0.3424},  // width 64, 1024 targets a step, seed 1337
    {1000, 0, 1, 0.0378},  // width 64, 256 targets a step, seed 1337
    {1000, 1, 0.5, 0.0027},  // width 64, 256 targets a step, seed 1337
    {1000, 1, 1, 0.0052},  // width 64, 256 targets a step, seed 2
    {1000, 1, 1, 0.0219},  // width 64, 256 targets a step, seed 1337
    {1000, 1, 1, 0.0728},  // width 64, 2816 targets a step, seed 1337
    {1000, 1, 2, 0.0705},  // width 64, 256 targets a step, seed 1337
    {1000, 1, 4, 0.1309},  // width 64, 256 targets a step, seed 2
    {1000, 1, 4, 0.1544},  // width 64, 256 targets a step, seed 1337
    {1000, 1, 8, 0.2059},  // width 64, 256 targets a step, seed 1337
    {2000, 1, 1, 0.0240},  // width 64, 256 targets a step, seed 1337
    {2000, 1, 4, 0.1655},  // width 64, 256 targets a step, seed 1337
};
// clang-format on

TEST(DelayPriceTest, IsWithinHalfAgainOfWhatWasMeasured) {
  int beyond = 0;
  for (const TrainedCell& cell : kTrained) {
    if (cell.price < 0.01) continue;
    const double ratio = delay_price(cell.delay, cell.look_ahead, cell.steps) / cell.price;
    if (ratio >= 1 / 1.5 && ratio <= 1.5) continue;
    ++beyond;
    EXPECT_LE(cell.delay, 1) << "after " << cell.steps << ": " << ratio;
    EXPECT_LT(std::abs(ratio - 1) * cell.price, 0.04) << "after " << cell.steps << ": " << ratio;
  }
  EXPECT_LE(beyond, static_cast<int>(std::size(kTrained)) / 10);
}

TEST(DelayPriceTest, IsThatOfTheMeanWhereTrainingsDiffer) {
  for (const TrainedCell& one : kTrained) {
    double sum = 0, count = 0;
    for (const TrainedCell& cell : kTrained)
      if (cell.steps == one.steps && cell.look_ahead == one.look_ahead && cell.delay == one.delay) {
        sum += cell.price;
        ++count;
      }
    if (sum < 0.01 * count || one.steps == 380) continue;
    const double ratio = delay_price(one.delay, one.look_ahead, one.steps) * count / sum;
    EXPECT_GT(ratio, 1 / 1.5) << one.steps << " steps, delay " << one.delay;
    EXPECT_LT(ratio, 1.5) << one.steps << " steps, delay " << one.delay;
  }
}

TEST(DelayPriceTest, GrowsWithTheDelayAndBeyondWhatWasMeasured) {
  for (const double steps : {0.0, 10.0, 150.0, 260.0, 400.0, 700.0, 1000.0, 1e9}) {
    for (const double ahead : {0.0, 0.5, 1.0, 4.0}) {
      EXPECT_EQ(delay_price(0, ahead, steps), 0) << ahead;
      double last = 0;
      for (double delay = 0.125; delay <= 16; delay += 0.125) {
        EXPECT_GT(delay_price(delay, ahead, steps), last) << delay;
        last = delay_price(delay, ahead, steps);
      }
    }
  }
  EXPECT_NEAR(delay_price(16, 1, 400) - delay_price(12, 1, 400), delay_price(8, 1, 400) - delay_price(4, 1, 400),
              1e-12);
  EXPECT_NEAR(delay_price(0.75, 0, 400), (delay_price(0.5, 0, 400) + delay_price(1, 0, 400)) / 2, 1e-12);
}

TEST(DelayPriceTest, LiesBetweenThoseOfAShorterAndALongerRun) {
  const double middle = std::sqrt(400.0 * 1000.0);
  EXPECT_NEAR(delay_price(2, 1, middle), (delay_price(2, 1, 400) + delay_price(2, 1, 1000)) / 2, 1e-12);
  EXPECT_EQ(delay_price(2, 1, 20), delay_price(2, 1, 150)) << "shorter ones were not measured";
  EXPECT_EQ(delay_price(2, 1, 1e6), delay_price(2, 1, 1000)) << "nor longer ones";
  EXPECT_EQ(delay_price(2, 1, 0), delay_price(2, 1, 1000)) << "no end is known";
  for (const double delay : {1.0, 2.0, 4.0})
    EXPECT_LT(delay_price(delay, 1, 1000), delay_price(delay, 1, 400)) << delay;
}

TEST(DelayPriceTest, LookAheadMakesItCheaperAndMoreThanOneUpdateAsOne) {
  for (const double delay : {0.5, 1.0, 2.0, 4.0}) {
    EXPECT_LT(delay_price(delay, 1, 400), delay_price(delay, 0, 400)) << delay;
    EXPECT_EQ(delay_price(delay, 4, 400), delay_price(delay, 1, 400)) << "more was not measured";
    EXPECT_NEAR(delay_price(delay, 0.5, 400), (delay_price(delay, 0, 400) + delay_price(delay, 1, 400)) / 2, 1e-12);
  }
}

}  // namespace
}  // namespace shoal
