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
#include "events/recent_rate.h"
#include "runtime/peer/peer_state.h"

namespace shoal {

// What is read off for it, all of it since the start.
struct PeerFigures {
  PeerPhase phase = PeerPhase::kConnecting;
  std::string reason;
  std::optional<std::uint16_t> stage{};
  std::uint64_t accepted = 0;                        // microbatches of this session
  std::uint64_t targets = 0;                         // of one
  std::uint64_t run_targets = 0;                     // committed by the run, as last heard
  std::uint64_t fetched_bytes = 0, fetch_total = 0;  // of a state on its way here
  std::string device{};                              // "cpu", "cuda:0"
  std::uint64_t memory_used = 0, memory_needed = 0;  // bytes of this process, and what was estimated; 0: not known
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // of all sessions
  std::optional<std::uint64_t> disk_version{};       // of the newest checkpoint on this machine's disk
  Duration disk_age{};                               // of it
};

class PeerLine {
 public:
  static constexpr Duration kWindow = 10s;

  // "serving 2  50%  took 1.23k  1.20k tok/s  disk v12 0:45  cpu  1.2/1.9G  up 1.1M/34M  down 1.2M/40M": stage,
  // share of its stage's work, microbatches accepted in this session, targets a second, version and age of the newest
  // checkpoint on this machine's disk, device, GiB used of those that were estimated, bytes now and in all. Rates are
  // those of the last 10 s, or of the last two microbatches where they are further apart. While a state comes:
  // "fetching 2 312M/1.10G 28%  72.0MB/s  0:11 left". Else state, stage and reason.
  std::string text(const PeerFigures& figures, TimePoint now, std::size_t columns);
  // Whether a log, which keeps every line, should have this one: while anything moves, always; of a peer that waits
  // ever more rarely (SparseTicks).
  bool due(const PeerFigures& figures, TimePoint now);

 private:
  // What moves: state, stage, microbatches, and bytes of a state.
  using Moving = std::tuple<PeerPhase, std::optional<std::uint16_t>, std::uint64_t, std::uint64_t>;
  std::optional<Moving> told_;
  TimePoint stands_since_{};
  SparseTicks ticks_;
  RecentRate work_{kWindow}, run_{kWindow}, up_{kWindow}, down_{kWindow}, fetched_{kWindow};
};

// What `join` says at its end: "memory: at most 1.62 GiB of this process, 1.71 GiB were estimated".
std::string memory_text(std::uint64_t peak, std::uint64_t estimated);

}  // namespace shoal
