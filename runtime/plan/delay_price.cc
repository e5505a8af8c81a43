#include "runtime/plan/delay_price.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace shoal {
namespace {

// Means over models of width 64, 128 and 256, steps of 256 to 1024 targets and up to two seeds; four stages of which
// the first is latest, the rate and the warm-up that "auto" takes: `solo --delay-profile` with a text of 1.1 MB
// (docs/RESULTS.md has each cell). A run of 2000 steps pays what one of 1000 does.
struct MeasuredPrice {
  double delay;         // mean, in inner steps
  double plain, ahead;  // AdamW; looking ahead by one update
};
constexpr std::size_t kDelays = 6;
struct MeasuredRun {
  double steps;
  MeasuredPrice prices[kDelays];
};
// clang-format off
constexpr MeasuredRun kMeasured[] = {
    {150,  {{0, 0, 0}, {0.5, 0.010, 0.003}, {1, 0.180, 0.064}, {2, 0.195, 0.200}, {4, 0.235, 0.230}, {8, 0.240, 0.235}}},
    {400,  {{0, 0, 0}, {0.5, 0.010, 0.008}, {1, 0.035, 0.030}, {2, 0.205, 0.110}, {4, 0.235, 0.205}, {8, 0.300, 0.290}}},
    // Without look-ahead only a delay of 1 was measured: the others stand to those with it as after 400 steps.
    {1000, {{0, 0, 0}, {0.5, 0.008, 0.004}, {1, 0.035, 0.018}, {2, 0.120, 0.070}, {4, 0.190, 0.150}, {8, 0.240, 0.205}}},
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

}  // namespace

double delay_price(double delay, double look_ahead, double steps) {
  const std::span runs(kMeasured);
  const double length = steps == 0 ? runs.back().steps : std::clamp(steps, runs.front().steps, runs.back().steps);
  std::size_t above = 1;
  while (runs[above].steps < length) ++above;
  const MeasuredRun &low = runs[above - 1], &high = runs[above];
  const double part = std::log(length / low.steps) / std::log(high.steps / low.steps);
  const double shorter = of_run(low, delay, look_ahead), longer = of_run(high, delay, look_ahead);
  return shorter + part * (longer - shorter);
}

double part_of_loss(double price) { return std::expm1(price); }

}  // namespace shoal
