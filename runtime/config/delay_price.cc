#include "runtime/config/delay_price.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shoal {
namespace {

// Validation loss in nats a target, by mean delay in inner steps; every stage equally late, best of the learning rates
// tried. From plain PyTorch with a queue of gradients: 4 layers of width 64, 64 positions, inner batch 2048, 244 steps
// (0.5 M tokens) of a text of 1 MB, one seed. `shoal-bench staleness --text FILE` measures the columns `plain` and
// `ahead` (that one with c = 1 at every delay; --set optimizer.beta1=0.95 for its beta1) in shoal itself, a row a
// delay. Its figures then take the place of these. Nothing in shoal replays a ramp. The ramps at 0.5 and 1 were not
// measured: they are taken to save the part that they save at 2.
struct MeasuredLoss {
  double delay;
  double plain, ahead;            // AdamW; looking ahead by delay + 1/2 updates (1 at 0.5), beta1 0.95
  double plain_ramp, ahead_ramp;  // the same on kFlightRamp from no delay at all
};
// clang-format off
constexpr MeasuredLoss kMeasured[] = {
    {0, 2.316, 2.313, 2.316, 2.313},
    {0.5, 2.467, 2.391, 2.399, 2.356},
    {1, 2.583, 2.465, 2.461, 2.395},
    {2, 2.705, 2.569, 2.525, 2.449},
    {4, 3.057, 2.870, 2.606, 2.521},
};
// clang-format on

struct Prices {
  double plain = 0, ahead = 0, plain_ramp = 0, ahead_ramp = 0;
};
using PriceList = std::array<Prices, std::size(kMeasured)>;

const PriceList& price_list() {
  static const PriceList list = [] {
    PriceList prices;
    const auto price = [](double loss) { return std::max(0.0, std::log(loss / kMeasured[0].plain)); };
    for (std::size_t i = 0; i < prices.size(); ++i) {
      const MeasuredLoss& at = kMeasured[i];
      prices[i] = {price(at.plain), price(at.ahead), price(at.plain_ramp), price(at.ahead_ramp)};
    }
    return prices;
  }();
  return list;
}

double between(double delay, double Prices::*column) {
  const PriceList& list = price_list();
  std::size_t above = 1;
  while (above + 1 < list.size() && kMeasured[above].delay < delay) ++above;
  const double low = kMeasured[above - 1].delay, high = kMeasured[above].delay;
  const double part = (delay - low) / (high - low);
  return list[above - 1].*column + part * (list[above].*column - list[above - 1].*column);
}

double mixed(double delay, double look_ahead, double Prices::*plain, double Prices::*ahead) {
  const double part = std::min(1.0, look_ahead);
  return (1 - part) * between(delay, plain) + part * between(delay, ahead);
}

// What kFlightRamp saves of it, from no delay at all.
double saved(double delay, double look_ahead) {
  return delay_price(delay, look_ahead) - mixed(delay, look_ahead, &Prices::plain_ramp, &Prices::ahead_ramp);
}

}  // namespace

double delay_price(double delay, double look_ahead) { return mixed(delay, look_ahead, &Prices::plain, &Prices::ahead); }

double delay_price(double delay, double look_ahead, double delay_first, const FlightRamp& ramp) {
  const double held = (ramp.begin + ramp.end) / (kFlightRamp.begin + kFlightRamp.end);
  // Of the delay that is there from the first step on nothing is saved.
  return delay_price(delay, look_ahead) -
         std::min(1.0, held) * (saved(delay, look_ahead) - saved(delay_first, look_ahead));
}

double part_of_loss(double price) { return std::expm1(price); }

}  // namespace shoal
