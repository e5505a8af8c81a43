#pragma once
// What late gradients are expected to cost: the price list, measured in one process whose gradients were late as a
// profile says (kMeasured in delay_price.cc names the runs). Pure; thread-safe.
//
// A price is ln(L / L0): L the validation loss with gradients late by `delay` inner steps on average, L0 that of plain
// AdamW without delay, after the same tokens. It is larger for larger steps, from which more is learned without delay,
// and at the same size of a step it falls with their number. Between what was measured it goes in straight lines, over
// the delay and the logarithms of both; beyond the last delay as between the last two, beyond the other ends as there.
namespace shoal {

// What a run pays by.
struct LateRun {
  double steps = 0;    // inner steps; 0: no end is known, and it counts as the longest
  double targets = 0;  // of one, of one replica
};

// The part of a schedule, in shares of its targets, over which the number in flight rises from its least to all.
// Nothing is taken off the price for it: what one saves was seen in plain PyTorch alone, and swarms with 2 and 8 in
// flight paid about the full price (docs/RESULTS.md).
struct FlightRamp {
  double begin = 0, end = 0;
  bool operator==(const FlightRamp&) const = default;
};
inline constexpr FlightRamp kFlightRamp{0.1, 0.6};  // that "auto" takes

// Runs of different length: L falls as tokens^-kLossPerToken, so a price p is paid with exp(p / kLossPerToken) times
// the tokens. From docs/history/results.md, `solo` of the demo's settings: 2.620 after 0.7 M tokens, 2.252 after 2.0 M.
inline constexpr double kLossPerToken = 0.144;

// `look_ahead` in updates: none, one and more as measured, part of one in proportion. REQUIRES: none is negative.
double delay_price(double delay, double look_ahead, const LateRun& run);

// A price as a part of the loss: 0.03 is 3 %.
double part_of_loss(double price);

}  // namespace shoal
