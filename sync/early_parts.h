#pragma once
// Parts of rounds that overtook their RoundOpen. Pure: no I/O, no clock. Thread: loop only.
// Bounds: one part a sender, kSendersMax senders, the bytes that keep() is told. Beyond a bound the largest part is
// dropped first, so a sender pushes out no part that is smaller than its own.
#include <cstdint>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "transport/limits.h"
#include "transport/messages.h"

namespace shoal {

class EarlyParts {
 public:
  struct Part {
    Session from;
    RoundPart part;
    Bytes frame;
  };
  static constexpr std::size_t kSendersMax = limits::kReplicasMax;
  // A sender is no more rounds ahead than were abandoned while their openings were on their way here.
  static constexpr std::uint64_t kRoundsAheadMax = 64;

  // A part of a newer round replaces its sender's older one: whoever sends it has left the older round. Sums are never
  // early, since they need a piece of ours.
  void keep(Part arrived, std::uint64_t bytes_max);
  // Returns those of `round`, which opens here, and forgets them, those of older rounds, and those of rounds more than
  // kRoundsAheadMax after it.
  std::vector<Part> take(RoundId round);
  // Those of `round` and older ones.
  void forget_until(RoundId round);
  void clear() { parts_.clear(); }
  std::size_t size() const { return parts_.size(); }

 private:
  std::vector<Part> parts_;  // as they came
};

}  // namespace shoal
