#include "runtime/plan/delay_price.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shoal {
namespace {

// Validation loss in nats a target, by mean delay in inner steps; every stage equally late, the best of the learning
// rates tried, one seed: `bench/grid staleness` with a text of 1.1 MB, 0.5 M tokens each (docs/history/results.md).
struct MeasuredLoss {
  double delay;
  double plain, ahead;  // AdamW; looking ahead by one update
  // What kFlightRamp saves of what the delay adds, as parts. Nothing in shoal replays a ramp: from plain PyTorch with a
  // queue of gradients, the same model and length. At 0.5 and 1 not measured: taken to be those at 2.
  double plain_saved, ahead_saved;
};
// clang-format off
constexpr MeasuredLoss kMeasured[] = {
    {0, 2.3428, 2.3428, 0, 0},
    {0.5, 2.4837, 2.4152, 0.46, 0.47},
    {1, 2.5541, 2.4979, 0.46, 0.47},
    {2, 2.6942, 2.6322, 0.46, 0.47},
    {4, 2.9700, 2.8266, 0.61, 0.63},
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
    const auto ramped = [](double loss, double undelayed, double saved) { return loss - saved * (loss - undelayed); };
    for (std::size_t i = 0; i < prices.size(); ++i) {
      const MeasuredLoss &at = kMeasured[i], &none = kMeasured[0];
      prices[i] = {price(at.plain), price(at.ahead), price(ramped(at.plain, none.plain, at.plain_saved)),
                   price(ramped(at.ahead, none.ahead, at.ahead_saved))};
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
  // Nothing is saved of the delay that is there from the first step on.
  return delay_price(delay, look_ahead) -
         std::min(1.0, held) * (saved(delay, look_ahead) - saved(delay_first, look_ahead));
}

double part_of_loss(double price) { return std::expm1(price); }

}  // namespace shoal
