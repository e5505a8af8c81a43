#pragma once
// Which peers are asked to come again later although the run has room: too many from one host at once, and those with
// a session that ended for what it did. These rest for kPeerRest, by key and not by session.
//
// State machine without I/O and clock. Thread: loop only. Bounds: kHostsMax hosts, kPeersMax peers; the ones longest
// unheard of go first.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/backoff.h"
#include "common/ids.h"
#include "common/time.h"
#include "transport/token_bucket.h"

namespace shoal {

class AdmissionPace {
 public:
  static constexpr double kPerSecond = 2, kAtOnce = 64;  // joiners of one host
  static constexpr std::size_t kHostsMax = 1024, kPeersMax = 4096;

  // Why `peer`, whose connection comes from `host` (Wire::other_host; empty: not known), is not admitted now; none: it
  // may be, and is counted.
  std::optional<std::string> refuse(const PeerId& peer, const std::string& host, TimePoint now);
  // Its session ended for what it did. Returns how long it rests.
  Duration on_misconduct(const PeerId& peer, TimePoint now);

 private:
  struct Host {
    TokenBucket joiners{kPerSecond, kAtOnce};
    TimePoint asked_at{};
  };
  struct Rest {
    Backoff length = kPeerRest;
    TimePoint until{};
  };
  std::map<std::string, Host> hosts_;
  std::map<PeerId, Rest> rests_;
};

}  // namespace shoal
