#pragma once
// Bytes of a peer over all its sessions, the time that its rounds took, and how much of them stands in events already.
// Values.   Thread: any.
#include <cstdint>
#include <utility>

namespace shoal {

struct Traffic {
  std::uint64_t sent = 0, received = 0;  // over links
  std::uint64_t relayed = 0;             // of those sent, over relays
  std::uint64_t fp32 = 0, payload = 0;   // of activations and gradients that were encoded; of their frames
  std::uint64_t deltas = 0, keys = 0;    // activations sent as differences and as key frames, where an edge has bases
  std::uint64_t rounds = 0;              // of those sent, pieces and sums of rounds
  std::uint64_t round_us = 0;            // no bytes: for how long rounds held the device

  Traffic operator+(const Traffic& o) const {
    return {.sent = sent + o.sent,
            .received = received + o.received,
            .relayed = relayed + o.relayed,
            .fp32 = fp32 + o.fp32,
            .payload = payload + o.payload,
            .deltas = deltas + o.deltas,
            .keys = keys + o.keys,
            .rounds = rounds + o.rounds,
            .round_us = round_us + o.round_us};
  }
  Traffic operator-(const Traffic& o) const {
    return {.sent = sent - o.sent,
            .received = received - o.received,
            .relayed = relayed - o.relayed,
            .fp32 = fp32 - o.fp32,
            .payload = payload - o.payload,
            .deltas = deltas - o.deltas,
            .keys = keys - o.keys,
            .rounds = rounds - o.rounds,
            .round_us = round_us - o.round_us};
  }
  bool operator==(const Traffic&) const = default;
};

class TrafficBook {
 public:
  // `session`: all of the session under way.
  Traffic total(const Traffic& session) const { return before_ + session; }
  void end_session(const Traffic& session) { before_ = total(session); }
  // What was added since the last call.
  Traffic take_unwritten(const Traffic& session) {
    const Traffic now = total(session);
    return now - std::exchange(written_, now);
  }

 private:
  Traffic before_;  // of earlier sessions
  Traffic written_;
};

}  // namespace shoal
