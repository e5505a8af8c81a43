#pragma once
// What a session counts of itself, for beats, records and people; nothing is decided here by it. Pure; `now` is passed
// in. Thread: loop only.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string_view>
#include <vector>

#include "common/time.h"
#include "events/delay.h"
#include "metrics/peer_figures.h"
#include "metrics/recent_rate.h"
#include "router/ledger.h"
#include "transport/messages.h"

namespace shoal {

class Meters {
 public:
  // For one microbatch: its targets, and what an activation of it weighs in fp32.
  Meters(std::uint64_t targets, std::uint64_t activation_bytes)
      : targets_(targets), activation_bytes_(activation_bytes) {}

  void start(TimePoint now) { rate_.note(0, now); }
  void stepped(const DelayHistogram& delays);
  void dropped_graphs(std::size_t graphs) { figures_.graphs_dropped += graphs; }
  // A microbatch took so long here, both ways.
  void computed(double forward_us, double backward_us);
  // A pass of this microbatch of the run's trainer failed; one was counted, or is on its way to be.
  void refused(std::uint64_t serial, RefusalCause cause);
  void passed(std::uint64_t serial) { refused_.erase(serial); }
  // An activation or gradient went into a frame of `bytes`; 0: it did not (a failed job, or an end of the pipeline).
  void encoded(std::size_t bytes);
  void activations_go_as(std::string_view codec) { figures_.activation_codec = codec; }
  void gradients_go_as(std::string_view codec) { figures_.gradient_codec = codec; }
  // Call with every beat.
  void measure(const LedgerCounters& entries, TimePoint now);

  // What was measured; `entries`: as they are now.
  PeerFigures figures(const LedgerCounters& entries) const;
  // As in Beat; what is below the low-water mark is forgotten.
  std::vector<RefusedMicrobatch> refused(std::uint64_t low);
  double job_us() const { return figures_.forward_us.value_or(0) + figures_.backward_us.value_or(0); }

 private:
  std::uint64_t targets_, activation_bytes_;
  PeerFigures figures_;
  std::deque<DelayHistogram> delays_;                   // of the last windows
  std::map<std::uint64_t, RefusedMicrobatch> refused_;  // by serial, at most limits::kRefusedMax
  RecentRate rate_{kRateWindow};                        // of targets counted
};

}  // namespace shoal
