#pragma once
// How many microbatches a trainer keeps under way: what a number is expected to bring and to cost, and which one "auto"
// takes. Pure; thread-safe. The prices: delay_price.h. A run is seen as S stages of R replicas, with a = the
// microbatches of one step of all replicas (the smaller of a warm start's and the later ones). Under `diloco` that is R
// times the microbatches that close a replica's inner step: a begun one counts whole.
//
// Delay. With n in flight, a gradient waits for n others, and a step is made every a of them: n / a inner steps at
// stage 0. At stage i the forward comes i hops later, and the step waits for the COMMIT behind everybody's backward, a
// hop more: n / a * (2S - i) / (2S + 1). Under `allreduce` step s is issued when s - 2 is done: at most 1.
//
// Use of the pipe. A microbatch makes 2S passes and as many hops. The links of strangers are not known in advance, so a
// hop is taken to last as long as a pass: n keep n / 2 devices at work, of S * R, and 2 * S * R fill the pipe.
//
// Time to a loss, over that of a full pipe whose gradients are never late: 1 / (use of the pipe), times the tokens that
// make up for the price (kLossPerToken).
//
// "auto" takes the number of least time among R, 2R, ... 2 * S * R that are expected to cost at most kPriceBorne, so
// that what a run learns from its tokens is what one process would; where none is so cheap it takes R, one a replica.
// Where nothing is late (`drain`) or nothing is learned (the executors of whole numbers) it fills the pipe.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/delay_price.h"

namespace shoal {

inline constexpr double kPriceBorne = 0.03, kPriceWarned = 0.05;  // parts of the validation loss

struct FlightRow {
  std::uint64_t in_flight = 0;
  double of_window = 0;              // n / a
  std::vector<double> delays;        // expected, in inner steps, by stage
  double delay = 0;                  // their mean
  double look_ahead = 0;             // in updates
  std::optional<FlightRamp> ramp{};  // that is in force with this number
  double price = 0;                  // part of the validation loss
  double pipe_use = 0;               // 0 to 1, over the schedule, the ramp included
  double time = 0;                   // to a loss
};

struct FlightPlan {
  std::uint64_t window = 0;     // a
  std::uint64_t fill = 0;       // 2 * S * R
  std::uint64_t in_flight = 0;  // of this run
  std::uint64_t automatic = 0;  // what "auto" takes
  std::string reason;           // why, a sentence without its full stop
  std::vector<FlightRow> rows;  // of 1, 2, 4, ... up to twice `fill`, `in_flight` and `automatic`
  std::optional<std::string> warning;
};

// REQUIRES, here and below: a checked configuration (parse_config), n > 0.
FlightPlan plan_flight(const RunConfig& config);

// Of a run that is expected to cost more than kPriceWarned: how much, and which key repairs it.
std::optional<std::string> price_warning(const RunConfig& config);

// Where "auto" takes less than fills the pipe: why, what that leaves, and what keeps more under way.
std::optional<std::string> pipe_notice(const RunConfig& config);

// ---- what RunConfig asks ----
std::uint64_t fill_of(const RunConfig& config);  // 2 * S * R
std::uint64_t choose_in_flight(const RunConfig& config);
// The ramp that is in force with `in_flight` under way.
std::optional<FlightRamp> ramp_of(const RunConfig& config, std::uint64_t in_flight);
std::uint64_t fewest_of(const RunConfig& config, std::uint64_t in_flight);

}  // namespace shoal
