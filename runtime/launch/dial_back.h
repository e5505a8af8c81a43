#pragma once
// At which of its addresses others can dial a joiner or a member: found out by its first contact, whose word alone
// stands on the member list. A peer that answers nowhere takes part over links that it dials itself.
//
// The launching process dials every address anew, with the key that the peer proved as the one that must answer, and
// hangs up. A joiner waits kAnswerTime for it at most; what answers later is told by another verdict.
//
// Only addresses of a peer that proved its key are dialled, and anybody can make keys: so that strangers cannot have
// others flooded with connections, or a private network looked through, an address is dialled that the request comes
// from, and another one only for a peer that paid for it (transport/whereabouts.h). At most kAtOnce peers are dialled
// at a time, kPerSecond of them a second, and one peer every kPause. A peer that comes meanwhile waits in line; a
// joiner that finds no place there is one that nobody dialled, and asks later.
//
// Thread: loop only.   Borrows: transport and loop, which outlive it.   Bounds: kRememberedMax peers with one request
// each, kWaitingMax of them in line.
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/token_bucket.h"
#include "transport/transport.h"

namespace shoal {

class DialBack {
 public:
  static constexpr std::size_t kAtOnce = 64, kWaitingMax = 1024, kRememberedMax = 2048;
  static constexpr double kPerSecond = 64;         // after a rest kAtOnce at once
  static constexpr Duration kPause = 4s;           // below a member's own, so that its next query is a new trial
  static constexpr Duration kAnswerTime = 1500ms;  // a joiner waits so long for an address that may answer

  struct Verdict {
    Remote from;
    std::optional<JoinRequest> request;  // of a joiner, in its first verdict
    Whereabouts found;                   // what answered so far, with the reach that is
    std::string why;                     // what became of the others
    bool whole = true;                   // none is being dialled any more
  };
  // `decided` runs later than the check() that asked, and may be long after its link went.
  DialBack(Transport& transport, EventLoop& loop, std::function<void(const Verdict&)> decided);
  DialBack(const DialBack&) = delete;
  DialBack& operator=(const DialBack&) = delete;

  // A joiner's request is answered once in any case, a member's query unless it comes too early.
  void check(const Remote& from, const Whereabouts& told, const DialOrigin& origin,
             std::optional<JoinRequest> request = {});
  bool has_line() const { return !line_.empty(); }

 private:
  struct Trial {
    Remote from;
    std::optional<JoinRequest> request;
    Whereabouts told, dialable;
    std::set<std::string> answered{};
    std::string why{};
    std::size_t open = 0;  // addresses that are being dialled
    bool in_line = false, under_way = false;
    bool said = false;         // a verdict was
    std::uint64_t number = 0;  // tells one trial of a peer from the next
    TimePoint next_at{};       // until then what was found holds for what was told
    bool busy() const { return in_line || under_way; }
    Whereabouts found() const;
    std::string reasons() const;  // why not more; not empty where nothing was found
  };
  Trial* trial_of(const PeerId& peer);  // null: no room
  void decide(Trial& trial);
  void decide_later(Verdict verdict);
  void dial_next();
  void on_tried(const PeerId& peer, const std::string& address, const Status& answered);

  Transport& transport_;
  EventLoop& loop_;
  std::function<void(const Verdict&)> decided_;
  std::map<PeerId, Trial> trials_;
  std::deque<PeerId> line_;
  std::size_t under_way_ = 0;
  std::uint64_t numbers_ = 0;
  TokenBucket dials_{kPerSecond, kAtOnce};
  bool timer_ = false;
  Lifetime lifetime_;
};

}  // namespace shoal
