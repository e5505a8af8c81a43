#pragma once
// What a peer counts and measures of itself, for people: nothing is decided by what has a row. Value.
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "metrics/figure.h"

namespace shoal {

struct PeerFigures {
  // ---- of its session ----
  std::uint64_t accepted = 0, accepted_targets = 0;  // microbatches, and their targets
  std::uint64_t counted = 0, undone = 0, recomputed = 0;
  std::uint64_t graphs_dropped = 0;  // by inner steps: their forwards run again
  double rate = 0;                   // targets counted a second
  double delay = 0;                  // mean of a gradient in inner steps, over the last windows
  double queue_seconds = 0;          // of the device
  // By name, of the newest ones that were sent in training; empty: none was.
  std::string activation_codec{}, gradient_codec{};
  // ---- of its process ----
  std::string device{};                              // "cpu", "cuda:0"
  std::uint64_t memory_bytes = 0, memory_used = 0;   // that it needs, estimated; that it has. 0: not known
  double rtt_ms = 0;                                 // of the link to the launching process; 0: not measured
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // over all links of all sessions
  std::uint64_t sent_rate = 0, got_rate = 0;         // of these a second, since the record before
  std::uint64_t falls = 0;                           // of its DHT node lately (PeerDirectory::falls)
  // ---- without a row: for beats and events ----
  std::uint64_t inner_steps = 0;
  std::optional<double> forward_us{}, backward_us{};  // of a microbatch, mean of the last ones
  std::uint64_t fp32_bytes = 0, payload_bytes = 0;    // of activations and gradients that were encoded; of their frames
};

using PeerFigure = Figure<PeerFigures>;
std::span<const PeerFigure> peer_figures();

}  // namespace shoal
