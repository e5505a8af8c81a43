#pragma once
// Whether others can dial a joiner, found out by its first contact before it is admitted: a peer that nobody can dial
// cannot be the next hop of anybody, so it must not stand on the member list.
//
// The launching process dials every address of the request anew, with the key that the joiner proved as the one that
// must answer, and hangs up. One that answers is enough (an address of a local network is of use to neighbours alone).
// Meanwhile the joiner's repeated requests wait.
//
// Only addresses of a peer that proved its key are dialled, at most kAtOnce peers at a time and one peer every kPause,
// so that strangers cannot have others flooded with connections. Who finds no place asks again by itself (Membership
// repeats its request).
//
// Thread: loop only.   Borrows: transport and loop, which outlive it.   Bounds: kRememberedMax peers.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/transport.h"

namespace shoal {

class DialBack {
 public:
  static constexpr std::size_t kAtOnce = 16, kRememberedMax = 256;
  static constexpr Duration kPause = 4s;  // below Membership's own, so that its next request is a new trial

  struct Verdict {
    Remote from;
    JoinRequest request;
    Status reached;              // kUnreachable: what became of each address
    std::uint32_t failures = 0;  // in a row, as far as remembered
  };
  // `decided` runs later than the check() that asked, and may be long after its link went.
  DialBack(Transport& transport, EventLoop& loop, std::function<void(const Verdict&)> decided);
  DialBack(const DialBack&) = delete;
  DialBack& operator=(const DialBack&) = delete;

  void check(const Remote& from, const JoinRequest& request);

 private:
  struct Trial {
    std::vector<std::string> addresses;
    bool under_way = false;
    std::uint32_t failures = 0;
    TimePoint next_at{};  // until then what was found holds for these addresses
  };
  Trial* trial_of(const PeerId& peer);  // null: no room
  void on_outcome(const Remote& from, const JoinRequest& request, const Status& reached);

  Transport& transport_;
  EventLoop& loop_;
  std::function<void(const Verdict&)> decided_;
  std::map<PeerId, Trial> trials_;
  std::size_t under_way_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
