#pragma once
// The line of `shoal join`: what this machine gives, and what comes of it. Pure; the time is passed in. Thread: one at
// a time.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "common/sparse_ticks.h"
#include "common/time.h"
#include "metrics/recent_rate.h"
#include "runtime/peer/peer.h"

namespace shoal {

class PeerLine {
 public:
  // "serving 2  50%  took 1.23k  1.20k tok/s  disk v12 0:45  cpu  1.2/1.9G  up 1.1M/34M  down 1.2M/40M": stage,
  // share of its stage's work, the figures that have a place in a line (metrics/peer_figures.cc), version and age of
  // the newest checkpoint on this machine's disk, device, GiB used of those that were estimated, bytes now and in all.
  // Rates are those of the last 10 s, or of the last two microbatches where they are further apart. While a state
  // comes: "fetching 2 312M/1.10G 28%  72.0MB/s  0:11 left". Else state, stage and reason.
  std::string text(const PeerReport& report, TimePoint now, std::size_t columns);
  // Whether a log, which keeps every line, should have this one: while anything moves, always; of a peer that waits
  // ever more rarely (SparseTicks).
  bool due(const PeerReport& report, TimePoint now);

 private:
  // What moves: state, stage, microbatches, and bytes of a state.
  using Moving = std::tuple<PeerPhase, std::optional<StageId>, std::uint64_t, std::uint64_t>;
  std::optional<Moving> told_;
  TimePoint stands_since_{};
  SparseTicks ticks_;
  RecentRate run_{kRateWindow}, up_{kRateWindow}, down_{kRateWindow}, fetched_{kRateWindow};
};

// What `join` says at its end: "memory: at most 1.62 GiB of this process, 1.71 GiB were estimated".
std::string memory_text(std::uint64_t peak, std::uint64_t estimated);

}  // namespace shoal
