#pragma once
// Who is asked to come again later although the run has room: too many from one host at once, and peers whose
// sessions ended for what they did, which rest 30 s at first and twice as long each time, 10 min at most. By key, not
// by session.
//
// State machine without I/O and clock. Thread: loop only. Bounds: kHostsMax hosts, kPeersMax peers; the ones longest
// unheard of go first.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "transport/token_bucket.h"

namespace shoal {

class AdmissionPace {
 public:
  static constexpr double kPerSecond = 2, kAtOnce = 64;  // joiners of one host
  static constexpr Duration kRestFirst = 30s, kRestMax = 600s;
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
    Duration length{0};
    TimePoint until{};
  };
  std::map<std::string, Host> hosts_;
  std::map<PeerId, Rest> rests_;
};

}  // namespace shoal
