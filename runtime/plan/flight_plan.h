#pragma once
// How many microbatches a trainer keeps under way: what a number is expected to bring and to cost, and which one "auto"
// takes. Pure; thread-safe. The prices: delay_price.h. A run is seen as S stages of R replicas, with a = the
// microbatches of one step of all replicas (the smaller of a warm start's and the later ones). Under `diloco` that is R
// times the microbatches that close a replica's inner step: a begun one counts whole.
//
// Delay. With n in flight, a gradient waits for n others, and a step is made every a of them: n / a inner steps at
// stage 0. At stage i the forward comes i hops later, and the step waits for the COMMIT behind everybody's backward, a
// hop more: n / a * (2S - i) / (2S + 1). Under `allreduce` step s is issued when s - 2 is done: at most 1. With `drain`
// none.
//
// Use of the pipe. A microbatch makes 2S passes and as many hops. The links of strangers are not known in advance, so a
// hop is taken to last as long as a pass: n keep n / 2 devices at work, of S * R, and 2 * S * R fill the pipe. With
// `drain` a step begins when the one before is decided: it takes the 4S passes and hops of one microbatch and two
// passes for each of a / R that follow, where a full pipe takes two for each. A COMMIT travels beside the next
// forwards, and costs no time; the round that ends a step of `allreduce` does, and is not counted here.
//
// Time to a loss, over that of a full pipe whose gradients are never late: 1 / (use of the pipe), times the tokens that
// make up for the price (kLossPerToken).
//
// "auto" takes the number of least time among R, 2R, ... 2 * S * R that are expected to cost at most kPriceBorne, so
// that what a run learns from its tokens is what one process would; where none is so cheap it takes R, one a replica.
// Where nothing is late (`drain`) or nothing is learned (the executors of whole numbers) it fills the pipe.
//
// [sync] mode = "auto" takes drain where that takes less time to a loss than what "auto" keeps in flight beside other
// steps, or as much. It takes overlap where nothing is learned, a ramp is given, or global steps are made: how long
// rounds take is not known here.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/plan/delay_price.h"

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

// One way to keep the pipe full, or fuller, where "auto" takes less: what to write into RUN.toml, and what comes of it.
struct PipeFilling {
  std::vector<std::string> lines;  // "[sync] inner_batch = 4096"
  std::uint64_t in_flight = 0;
  double pipe_use = 0, price = 0;  // as in FlightRow
  std::uint64_t steps = 0;         // inner steps of the run then; 0: no end is set
};

struct FlightPlan {
  std::uint64_t window = 0;     // a
  std::uint64_t fill = 0;       // 2 * S * R
  std::uint64_t in_flight = 0;  // of this run
  std::uint64_t automatic = 0;  // what "auto" takes
  std::string reason;           // why, a sentence without its full stop
  std::vector<FlightRow> rows;  // of 1, 2, 4, ... up to twice `fill`, `in_flight` and `automatic`
  std::optional<std::string> warning;
  std::vector<PipeFilling> fillings{};  // none: it is full, or the number is given
};

// Puts what [sync] mode = "auto" takes in its place, and says why, a sentence without its full stop; nothing where a
// mode is given. REQUIRES, here and below: a checked configuration (parse_config), n > 0.
std::string take_mode(RunConfig& config);
// The same for people, of a configuration that has it: "mode = \"auto\" takes drain: ...".
std::string mode_sentence(const RunConfig& config, const std::string& why);

// Here and below "auto" is overlap.
FlightPlan plan_flight(const RunConfig& config);

// What is said of a run that is expected to cost more than kPriceWarned: how much, and which key repairs it.
std::optional<std::string> price_warning(const RunConfig& config);

// Where "auto" takes less than fills the pipe. Larger steps: the smallest with which "auto" fills it, or the largest
// that doubling those of now comes to. More in flight: all that fills it, whatever that costs.
std::vector<PipeFilling> pipe_fillings(const RunConfig& config);
// The same for people: why, what share of the pipe that leaves, and each line with the share that it would bring.
std::optional<std::string> pipe_notice(const RunConfig& config);
// "pipe 87 %, loss + 2.1 %, 320 steps".
std::string text_of(const PipeFilling& filling);

// Microbatches under way at most, whatever the ramp says: as given, or what "auto" takes.
std::uint64_t in_flight_of(const RunConfig& config);
// With "auto" more than in_flight_of() may be kept under way where lines are slow (runtime/trainer/flight_follower.h):
// up to this number, and on a ramp as many times what the ramp allows. That is expected to cost at most kPriceBorne,
// and kPriceOfLines more than in_flight_of() does, and is at most kFillMost times what fills the pipe when a hop lasts
// as long as a pass. Else in_flight_of().
inline constexpr std::uint64_t kFillMost = 4;
inline constexpr double kPriceOfLines = 0.01;
std::uint64_t in_flight_most(const RunConfig& config);
// As given, or with "auto" kFlightRamp where more than a quarter of a step is in flight and costs more than
// kPriceBorne; none without a schedule.
std::optional<FlightRamp> flight_ramp(const RunConfig& config);

// How many microbatches may be under way when a run has committed so many targets: worked out once, then asked often.
// A gradient is late by about (in flight of a replica) / (microbatches of its window) inner steps, and lateness costs
// most while the loss falls fast.
struct FlightLimits {
  std::uint64_t full = 0;     // in_flight_of()
  std::uint64_t most = 0;     // in_flight_most()
  std::uint64_t fewest = 0;   // a quarter of a step of all replicas, so that at most every fourth gradient is a step
                              // late; at least one a replica, at most `full`
  double begin = 0, end = 0;  // the ramp, in targets of the run; both 0: none
  // `fewest` up to `begin`, `full` from `end` on, between them a line, rounded down. Never falls.
  std::uint64_t at(std::uint64_t run_targets) const;
  // What slow lines may raise that to: `most` behind the ramp, and on it as large a part of `most` as at() is of
  // `full`.
  std::uint64_t most_at(std::uint64_t run_targets) const;
};
FlightLimits flight_limits(const RunConfig& config);
// The part of the first `run_targets` during which all were allowed, 0 to 1.
double full_in_flight_share(const RunConfig& config, std::uint64_t run_targets);
// Passes of validation under way: what fills the pipe at least, since no gradient follows that could be late.
std::uint64_t evaluations_in_flight(const RunConfig& config);

}  // namespace shoal
