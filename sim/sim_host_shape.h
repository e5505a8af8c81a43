#pragma once
// What the lines of a host of a SimNetwork are like, and what they do to the messages that it sends.
//
// Thread: any.   Borrows: nothing.   Pure but for the draws.
#include "common/bytes.h"
#include "common/rng.h"
#include "transport/wire.h"

namespace shoal {

struct SimHostShape {
  Duration latency = 10ms;         // half of what it adds to a round trip
  Duration jitter = 0ms;           // up to so much more, per message
  double up_bytes_per_second = 0;  // 0 = unlimited
  double down_bytes_per_second = 0;
  double control_bytes_per_second = 0;
  // What it sends:
  Duration lag = 0ms;     // up to so much more for all of one lane, drawn once a lane: lanes overtake each other
  double late_share = 0;  // of the messages: `late` more for each, and for what is behind it in its lane
  Duration late = 0ms;
  double repeat_share = 0;  // of the control messages: they arrive twice
  double flip_share = 0;    // of the messages: one bit is another
};

// How much longer than the latencies say a message is on its way that `side` of connection `id`, of this shape, sends.
Duration delay_of(const SimHostShape& shape, Rng& rng, ConnectionId id, int side, Lane lane);
// The message as it arrives.
Bytes disturbed(const SimHostShape& shape, Rng& rng, Bytes message);

}  // namespace shoal
