#pragma once
// The demo's figures from the event files of its processes: rate in bins of one second, time to recover from a fault,
// bytes. Pure apart from read_demo_events(); thread-safe. Times are seconds since 1970 as in the event files, losses
// nats a target.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "events/books/run_view.h"

namespace shoal {

struct DemoEvents {
  struct Commit {
    double at = 0;
    std::uint64_t targets = 0;
  };
  RunView run{};                                // the books of all processes
  std::vector<Commit> commits{};                // each microbatch once, by time
  std::vector<double> step_losses{};            // of the trainer's global steps
  std::map<std::string, std::uint64_t> lost{};  // (microbatch, stage) pairs lost, by the session that counted them
  std::uint64_t faults = 0;                     // sessions that were over without having left

  std::uint64_t tokens() const { return run.tally().committed_targets(); }
};

// All *.jsonl files of the folder. Lines that cannot be read are the audit's matter and skipped here. ERRORS: kMissing
// (no such file), kIo.
Result<DemoEvents> read_demo_events(const std::string& folder);

// Targets committed in each whole second [from + i, from + i + 1) before `to`.
std::vector<double> rate_bins(const std::vector<DemoEvents::Commit>& commits, double from, double to);
double median_of(std::vector<double> values);  // of an even count the mean of the middle two; 0 without values

// A stretch that does not count as undisturbed.
struct Disturbance {
  double from = 0, to = 0;
  bool overlaps(double begin, double end) const { return begin < to && from < end; }
};
// A fault lasts from the signal until the rate recovered and what was taken away is back, whichever is later; until
// `end` where one of them never came.
Disturbance disturbance_of(double signal, std::optional<double> recovered_s, std::optional<double> back_at, double end);
// Median of the bins in [from, to) that touch no disturbance.
double undisturbed_rate(const std::vector<DemoEvents::Commit>& commits, double from, double to,
                        const std::vector<Disturbance>& disturbed);

// Seconds from `signal` to the beginning of the first of three bins in a row (of one second, counted from the signal)
// that reach 0.9 of `before`. None: that never happened before `end`.
std::optional<double> recovered_after(const std::vector<DemoEvents::Commit>& commits, double signal, double end,
                                      double before);

// What a fault cost: the area below `before` in the kCostSeconds after the signal, or until `end` where that is sooner,
// in seconds of that rate. What is above it makes up for it; never below 0.
inline constexpr double kCostSeconds = 30;
struct FaultCost {
  double seconds = 0;  // of full rate
  double window = 0;   // seconds that were looked at
};
// None: nothing was committed before, or no second after it is left.
std::optional<FaultCost> cost_of(const std::vector<DemoEvents::Commit>& commits, double signal, double end,
                                 double before);

}  // namespace shoal
