#pragma once
// What a session counts of itself, for beats, records and people; nothing is decided by it. Pure; `now` is passed in.
// Thread: loop only.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "common/time.h"
#include "events/delay.h"

namespace shoal {

struct MeterReadings {
  std::uint64_t inner_steps = 0;
  std::uint64_t graphs_dropped = 0;                   // by inner steps: their forwards run again
  double rate = 0;                                    // targets a second over the last seconds
  double delay = 0;                                   // mean of a gradient in inner steps, over the last windows
  std::optional<double> forward_us{}, backward_us{};  // of a microbatch, mean of the last ones
  std::uint64_t fp32_bytes = 0, payload_bytes = 0;    // of activations and gradients that were encoded; of their frames
  std::string_view activation_codec{}, gradient_codec{};  // by name; of the newest ones that were sent in training
};

class Meters {
 public:
  static constexpr Duration kRatePeriod = 2s;

  // For one microbatch: its targets, and what an activation of it weighs in fp32.
  Meters(std::uint64_t targets, std::uint64_t activation_bytes)
      : targets_(targets), activation_bytes_(activation_bytes) {}

  void start(TimePoint now) { rate_since_ = now; }
  void stepped(const DelayHistogram& delays);
  void dropped_graphs(std::size_t graphs) { readings_.graphs_dropped += graphs; }
  // A microbatch took so long here, both ways.
  void computed(double forward_us, double backward_us);
  // An activation or gradient went into a frame of `bytes`; 0: it did not (a failed job, or an end of the pipeline).
  void encoded(std::size_t bytes);
  void activations_go_as(std::string_view codec) { readings_.activation_codec = codec; }
  void gradients_go_as(std::string_view codec) { readings_.gradient_codec = codec; }
  // `counted`: microbatches so far. Call with every beat.
  void measure(std::uint64_t counted, TimePoint now);

  const MeterReadings& readings() const { return readings_; }

 private:
  std::uint64_t targets_, activation_bytes_;
  MeterReadings readings_;
  std::deque<DelayHistogram> delays_;  // of the last windows
  TimePoint rate_since_{};
  std::uint64_t rate_counted_ = 0;  // microbatches, when the rate was last taken
};

}  // namespace shoal
