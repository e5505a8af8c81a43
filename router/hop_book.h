#pragma once
// The hops of a process and their claims: which peers were asked for which microbatch, under which lease. Whatever ends
// a claim goes through here, so that its credit is given back, the end of its frames is told and its peer hears of it.
// Which peer is asked, and when: courier.h.
//
// Thread: loop only.   Bounds: see courier.h.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "common/backoff.h"
#include "common/ids.h"
#include "common/time.h"
#include "router/hop.h"
#include "router/neighbours.h"
#include "transport/messages.h"

namespace shoal {

struct Hop {
  static constexpr Duration kBackoffMin = 50ms, kBackoffMax = 1s;
  // A child that was stranded is not asked again for as long as its attempt took, and twice as long after each one
  // more.
  static constexpr Duration kStrandedMin = 1s, kStrandedMax = 60s;

  struct Child {
    Lease lease;
    Session session;
    TransferId transfer = 0;
    HopPhase phase = HopPhase::kForward;
    TimePoint since;
    bool take = false;
    bool overdue = false;     // the hop's timer fired on it, and no news since
    bool frames_out = false;  // on_branch(kSent) was told, its end not yet
    bool key_asked = false;   // NeedKeyFrame was answered
    bool answered = false;    // a word about its claim came
    bool holds = true;        // as far as we know it has a credit of that peer
    TimePoint asked{};
    double predicted = 0;     // seconds that it would take, when it was asked
    Duration took{0};         // its forward and backward, as far as they are over
    std::uint64_t ahead = 0;  // frame bytes in our own queue up to the last of its frames, when looked at last
  };
  // A session that was ever asked for this microbatch.
  struct Tried {
    TimePoint not_before;  // it would not have this microbatch
    // It computed this microbatch and could not hand it on: to ask it again costs that once more. So it is not asked
    // before, unless the next stage answers it again.
    TimePoint stranded_until;
    Backoff rest{kStrandedMin, kStrandedMax};
  };

  HopSpec spec;
  std::vector<Child> children;  // oldest first
  std::map<Session, Tried> tried;
  std::optional<Lease> won;
  Session won_session;
  std::vector<EntryName> below;       // path the gradient came with
  TimePoint armed;                    // when the timer was last armed
  Duration armed_listened{0};         // the same, in time that was listened
  Duration patience{0};               // what it was armed with; 0 = liveness only
  std::optional<TimePoint> retry_at;  // no child, or only overdue ones: look for another then
  Backoff backoff{kBackoffMin, kBackoffMax};
  std::uint32_t asked = 0;
  TimePoint answered;  // the newest word of a child that is not stranded itself, or when the hop began
  bool parked = false;
  bool full = false;  // when it looked last it passed over a peer that had no room, and found no other
  bool stranded = false;
  bool committed = false;

  Child* child_of(const Lease& lease);
  Child* child_of(const Session& session);  // one claim a session
  void retry_later(TimePoint now) { retry_at = now + backoff.next(); }
};

class HopBook {
 public:
  enum class Drop : bool { kUnsaid, kReleased };  // what ends is told nothing, or Release

  // REQUIRES: owner and neighbours outlive it.
  HopBook(HopOwner& owner, Neighbours& neighbours) : owner_(owner), neighbours_(neighbours) {}

  // ---- hops ----
  Hop& open(HopSpec spec, TimePoint now);
  Hop* find(const MicrobatchId& microbatch);  // null: there is none
  const Hop* find(const MicrobatchId& microbatch) const;
  Hop* find(const Lease& lease, const Session& from);
  Hop& at(const MicrobatchId& microbatch) { return hops_.at(microbatch); }
  const std::set<MicrobatchId>& active() const { return active_; }  // not committed: a long round keeps many that are
  // As Courier::commit.
  void commit(const MicrobatchId& microbatch);
  void drop(const MicrobatchId& microbatch, Drop how);
  void forget_below(const Low& low);
  void set_parked(Hop& hop, bool parked);

  // ---- claims ----
  // A new one, under a lease of its own.
  Hop::Child& claim(Hop& hop, const Session& peer, bool take, TimePoint now);
  void frames_sent(const MicrobatchId& microbatch, Hop::Child& child, TransferId transfer);
  void end_branch(const MicrobatchId& microbatch, Hop::Child& child, BranchEnd end);
  void give_back(Hop::Child& child);  // its credit
  void drop_child(Hop& hop, const Lease& lease, Drop how);
  void make_room(Hop& hop, std::size_t limit);  // fewer children than `limit`: the oldest go
  void release(const Session& to, const Lease& lease) { neighbours_.send(to, Release{lease}); }

  // ---- look ----
  bool holds(const MicrobatchId& microbatch) const { return hops_.contains(microbatch); }
  bool waiting(const MicrobatchId& microbatch) const;
  bool stranded(const MicrobatchId& microbatch) const;  // as of the last tick
  std::size_t size() const { return hops_.size(); }
  std::size_t parked() const { return parked_; }
  std::map<Session, std::vector<Renewal>> renewals() const;  // claims to renew, by session
  // The session that sent the gradient which won.
  std::optional<Session> won_by(const MicrobatchId& microbatch) const;

 private:
  HopOwner& owner_;
  Neighbours& neighbours_;
  std::uint64_t next_lease_ = 1;
  std::map<MicrobatchId, Hop> hops_;  // ordered: timers and renewals run in a fixed order
  std::set<MicrobatchId> active_;
  std::unordered_map<Lease, MicrobatchId> by_lease_;
  std::size_t parked_ = 0;  // hops that are
};

}  // namespace shoal
