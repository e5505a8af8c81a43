#pragma once
// What late gradients are expected to cost: the price list, measured in one process whose gradients a queue made late
// (`bench/grid staleness`, and with a ramp the same world; kMeasured in delay_price.cc says which run). Pure;
// thread-safe.
//
// A price is ln(L / L0): L the validation loss with gradients late by `delay` inner steps on average, L0 that of plain
// AdamW without delay, after the same tokens. Between the measured delays it goes in straight lines, beyond the last
// one as between the last two.
namespace shoal {

// The part of a schedule, in shares of its targets, over which the number in flight rises from its least to all.
struct FlightRamp {
  double begin = 0, end = 0;
  bool operator==(const FlightRamp&) const = default;
};
// The ramp that was measured, and the one that "auto" takes.
inline constexpr FlightRamp kFlightRamp{0.1, 0.6};

// Runs of different length: L falls as tokens^-kLossPerToken, so a price p is paid with exp(p / kLossPerToken) times
// the tokens. From docs/history/results.md, `solo` of the demo's settings: 2.620 after 0.7 M tokens, 2.252 after 2.0 M.
inline constexpr double kLossPerToken = 0.144;

// All `delay` late from the first step on. `look_ahead` in updates: none, one and more as measured, part of one in
// proportion. REQUIRES: neither is negative.
double delay_price(double delay, double look_ahead);

// The same on a ramp that holds the delay at `delay_first` and then lets it rise to `delay`. What a ramp saves goes by
// the share of the schedule's delay that it holds back, (begin + end) / 2; more than kFlightRamp does was not measured
// and counts as that. REQUIRES: delay_first <= delay.
double delay_price(double delay, double look_ahead, double delay_first, const FlightRamp& ramp);

// A price as a part of the loss: 0.03 is 3 %.
double part_of_loss(double price);

}  // namespace shoal
