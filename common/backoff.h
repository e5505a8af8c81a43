#pragma once
// Pauses that double: `first`, twice that, and so on, `most` at most. Value; pure.
#include <algorithm>

#include "common/time.h"

namespace shoal {

struct Backoff {
  Duration first, most;
  Duration last{0};  // the newest pause; zero: none since the beginning or a reset()

  bool begun() const { return last > Duration::zero(); }
  // The next pause. It is not shorter than `at_least`, unless that is above `most`.
  Duration next(Duration at_least = Duration::zero()) {
    return last = std::clamp(std::max(2 * last, at_least), first, most);
  }
  // Half of the newest one, `first` at least: for what got better, and is not well yet.
  Duration ease() { return last = std::max(last / 2, first); }
  void reset() { last = Duration::zero(); }
};

// How long a peer is left alone when others could not use what it sent, or could not reach it.
inline constexpr Duration kPeerRestFirst = 30s, kPeerRestMax = 600s;
inline constexpr Backoff kPeerRest{kPeerRestFirst, kPeerRestMax};

}  // namespace shoal
