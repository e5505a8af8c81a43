#pragma once
// Whether others can dial a joiner, found out by its first contact before it is admitted: a peer that nobody can dial
// cannot be the next hop of anybody, so it must not stand on the member list.
//
// The launching process dials every address of the request anew, with the key that the joiner proved as the one that
// must answer, and hangs up. One that answers is enough (an address of a local network is of use to neighbours alone).
// Meanwhile the joiner's repeated requests wait.
//
// Only addresses of a peer that proved its key are dialled, and anybody can make keys: so that strangers cannot have
// others flooded with connections, or a private network looked through, an address is dialled that the request comes
// from, and another one only for a joiner that paid for it (transport/dial_trials.h). At most kAtOnce peers are dialled
// at a time, kPerSecond of them a second, and one peer every kPause. A joiner that comes meanwhile waits in line; one
// that finds no place there asks again by itself (Membership repeats its request).
//
// Thread: loop only.   Borrows: transport and loop, which outlive it.   Bounds: kRememberedMax peers, kWaitingMax of
// them in line with one request each.
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/token_bucket.h"
#include "transport/transport.h"

namespace shoal {

class DialBack {
 public:
  static constexpr std::size_t kAtOnce = 64, kWaitingMax = 1024, kRememberedMax = 2048;
  static constexpr double kPerSecond = 64;  // after a rest kAtOnce at once
  static constexpr Duration kPause = 4s;    // below Membership's own, so that its next request is a new trial

  struct Verdict {
    Remote from;
    JoinRequest request;
    Status reached;              // kUnreachable: what became of each address
    std::uint32_t failures = 0;  // dials in a row, as far as remembered; 0 with an error: none was dialled
  };
  // `decided` runs later than the check() that asked, and may be long after its link went.
  DialBack(Transport& transport, EventLoop& loop, std::function<void(const Verdict&)> decided);
  DialBack(const DialBack&) = delete;
  DialBack& operator=(const DialBack&) = delete;

  void check(const Remote& from, const JoinRequest& request, const DialOrigin& origin);

 private:
  struct Trial {
    Whereabouts whereabouts;
    bool in_line = false, under_way = false;
    std::uint32_t failures = 0;
    TimePoint next_at{};  // until then what was found holds for these addresses
    bool busy() const { return in_line || under_way; }
  };
  struct Waiting {
    Remote from;
    JoinRequest request;
    Whereabouts dialable;
  };
  Trial* trial_of(const PeerId& peer);  // null: no room
  void refuse_to_dial(Trial& trial, const Remote& from, const JoinRequest& asked, const DialOrigin& origin);
  void dial_next();
  void on_outcome(const Remote& from, const JoinRequest& request, const Status& reached);

  Transport& transport_;
  EventLoop& loop_;
  std::function<void(const Verdict&)> decided_;
  std::map<PeerId, Trial> trials_;
  std::deque<Waiting> line_;
  std::size_t under_way_ = 0;
  TokenBucket dials_{kPerSecond, kAtOnce};
  bool timer_ = false;
  Lifetime lifetime_;
};

}  // namespace shoal
