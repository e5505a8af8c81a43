#pragma once
// Members whose payment for a dial is on its way (dial_back.h), with the query that it came behind. Each has
// kPatience for it, and when all places are taken the oldest goes: frames that drip in, or never come, keep nobody else
// out. A joiner that lost its place asks again by itself.
//
// Value without I/O: the time is handed in.   Thread: loop only.   Bounds: kMax requests, one a peer.
#include <map>
#include <optional>
#include <vector>

#include "common/time.h"
#include "transport/links.h"
#include "transport/messages.h"

namespace shoal {

class Payments {
 public:
  static constexpr std::size_t kMax = 64;
  static constexpr Duration kPatience = 10s;

  bool awaits(const PeerId& peer) const;
  // Returns the frames that are to be refused for it. REQUIRES: nothing is awaited of this peer.
  std::optional<InboundFrames> await(const InboundFrames& frames, ReachQuery query, TimePoint now);
  // The frames are whole or will not come. None: they are awaited no more, or were none of a payment.
  std::optional<ReachQuery> take(const InboundFrames& frames);
  // Forgets those that took too long, and returns them: they are to be refused.
  std::vector<InboundFrames> take_late(TimePoint now);
  void drop(const PeerId& peer);  // its link is down

 private:
  struct Awaited {
    ReachQuery query;
    TimePoint since{};
  };
  std::map<InboundFrames, Awaited> awaited_;
};

}  // namespace shoal
