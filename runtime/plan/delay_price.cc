#include "runtime/plan/delay_price.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace shoal {
namespace {

// Means over models of width 64, 128 and 256 and up to two seeds; four stages of which the first is latest, the rate
// and the warm-up that "auto" takes: `solo --delay-profile` with a text of 1.1 MB (docs/RESULTS.md has each cell). A
// run of 2000 steps pays what one of 1000 does.
struct MeasuredPrice {
  double delay;         // mean, in inner steps
  double plain, ahead;  // AdamW; looking ahead by one update
};
constexpr std::size_t kDelays = 6;
struct MeasuredRun {
  double targets;  // of a step
  MeasuredPrice prices[kDelays];
};
struct MeasuredLength {
  double steps;
  MeasuredRun small, large;
};
// clang-format off
constexpr MeasuredLength kMeasured[] = {
    {150,
     {256, {{0, 0, 0}, {0.5, 0.008, 0.002}, {1, 0.18, 0.063}, {2, 0.19, 0.192}, {4, 0.232, 0.225}, {8, 0.24, 0.232}}},
     {1024, {{0, 0, 0}, {0.5, 0.01, 0.004}, {1, 0.18, 0.071}, {2, 0.213, 0.212}, {4, 0.25, 0.249}, {8, 0.27, 0.265}}}},
    {400,
     {256, {{0, 0, 0}, {0.5, 0.007, 0.002}, {1, 0.031, 0.019}, {2, 0.205, 0.1}, {4, 0.228, 0.197}, {8, 0.27, 0.249}}},
     {1024, {{0, 0, 0}, {0.5, 0.02, 0.015}, {1, 0.058, 0.036}, {2, 0.172, 0.121}, {4, 0.25, 0.215}, {8, 0.34, 0.335}}}},
    {1000,
     {256, {{0, 0, 0}, {0.5, 0.006, 0.003}, {1, 0.038, 0.018}, {2, 0.1, 0.0705}, {4, 0.171, 0.148}, {8, 0.23, 0.206}}},
     {2816, {{0, 0, 0}, {0.5, 0.04, 0.0325}, {1, 0.1, 0.073}, {2, 0.23, 0.21}, {4, 0.3, 0.287}, {8, 0.38, 0.37}}}},
};
// clang-format on

double of_run(const MeasuredRun& run, double delay, double look_ahead) {
  std::size_t above = 1;
  while (above + 1 < kDelays && run.prices[above].delay < delay) ++above;
  const MeasuredPrice &low = run.prices[above - 1], &high = run.prices[above];
  const double part = (delay - low.delay) / (high.delay - low.delay), ahead = std::min(1.0, look_ahead);
  const auto mixed = [&](const MeasuredPrice& price) { return (1 - ahead) * price.plain + ahead * price.ahead; };
  return mixed(low) + part * (mixed(high) - mixed(low));
}

// Where `at` lies between the logarithms of two.
double part_between(double low, double high, double at) {
  return std::log(std::clamp(at, low, high) / low) / std::log(high / low);
}

double of_length(const MeasuredLength& length, double delay, double look_ahead, double targets) {
  const double small = of_run(length.small, delay, look_ahead), large = of_run(length.large, delay, look_ahead);
  return small + part_between(length.small.targets, length.large.targets, targets) * (large - small);
}

}  // namespace

double delay_price(double delay, double look_ahead, const LateRun& run) {
  const std::span lengths(kMeasured);
  const double steps = run.steps == 0 ? lengths.back().steps : run.steps;
  std::size_t above = 1;
  while (above + 1 < lengths.size() && lengths[above].steps < steps) ++above;
  const MeasuredLength &low = lengths[above - 1], &high = lengths[above];
  const double shorter = of_length(low, delay, look_ahead, run.targets);
  const double longer = of_length(high, delay, look_ahead, run.targets);
  return shorter + part_between(low.steps, high.steps, steps) * (longer - shorter);
}

double part_of_loss(double price) { return std::expm1(price); }

}  // namespace shoal
