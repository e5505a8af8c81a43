#pragma once
// The trial at start, and when fewer keys are admitted: does what listens here really refuse whom it must? A key check
// that is not bound, or not asked, lets everybody in without a word, so it is not believed but tried.
#include "common/result.h"
#include "transport/limits.h"
#include "transport/zmq/key_check.h"
#include "transport/zmq/zmq_socket.h"

namespace shoal {

// How a stranger with `key` that claims to be `claimed` fared.
enum class StrangerFate { kKeyRefused, kClaimRefused, kAccepted, kSilence };
// ERRORS: as ZmqSocket::make.
Result<StrangerFate> knock(const HostPort& address, const PeerId& listener, const KeyPair& key, const PeerId& claimed,
                           Duration patience);

struct TrialTimes {
  Duration knock = limits::kGreetingTime;  // a connection
  Duration all = 60s;                      // until one is answered
};

// Blocks the calling thread until the verdict: a few milliseconds, up to a minute on a starved machine. ERRORS:
// kRefused: a stranger got in; kTimeout: no verdict.
Status try_as_stranger(HostPort address, const PeerId& listener, KeyCheck& keys, TrialTimes times = {});

}  // namespace shoal
