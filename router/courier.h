#pragma once
// The holder half of the protocol: for every microbatch that this process holds, which peers of the next stage work on
// it, and what happens when they do not answer. The trainer and each stage peer own one; it speaks for them over the
// links (Neighbours).
//
// State machine without I/O, threads or clock: events come in with `now`, messages leave through Neighbours. Thread:
// loop only. A hop is waiting (no gradient yet) or won. Its timer belongs to the hop, not to a branch, and is armed
// whenever the hop waits; it runs only while this process listens. What restarts it is news of the newest child: sent,
// below, backward (HopPhase); a child that is silent, or that says it is stranded, fires it as well. A hop is stranded
// itself when no peer that can be asked has said a word about its claims for longer than first words take here: the
// holder above is told, and asks another replica. Busy is a word, and so is every beat that names a claim: a hop that
// waits for a slow stage, or for room in one that is full (PeerHealth), is not stranded. Bounds: kChildrenMax children
// a hop, one more for a re-point; hops are as many as the ledger's entries (or the trainer's open microbatches);
// gradients on the way are as many as the links' transfers.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/backoff.h"
#include "common/ids.h"
#include "common/log_throttle.h"
#include "common/result.h"
#include "common/time.h"
#include "router/hop_book.h"
#include "router/neighbours.h"
#include "router/policy.h"
#include "transport/links.h"
#include "transport/messages.h"

namespace shoal {

struct CourierOptions {
  std::optional<StageId> ahead;  // the stage that is asked; none: this process serves the last one and asks nobody
  Duration lease = 4s;           // L: claims are renewed six times within it
};

struct CourierCounters {
  std::uint64_t branches = 0;   // children beyond a hop's first
  std::uint64_t busy = 0;       // refusals
  std::uint64_t stranded = 0;   // times that a hop became so
  std::uint64_t looked_at = 0;  // hops, by ticks: none that is committed
};

class Courier {
 public:
  static constexpr std::size_t kChildrenMax = 2;
  // A peer is not asked for a microbatch of which it said that its entry takes no more claims now, that it cannot serve
  // it, or that it has no room in its link.
  static constexpr Duration kCrowdedFor = 50ms, kUnfitFor = 500ms, kUnsentFor = 200ms;
  static constexpr Duration kRejectedFor = 5s;      // nor when its gradient could not be used
  static constexpr std::size_t kForgersMax = 1024;  // keys whose rests are remembered, so that they double

  // REQUIRES: owner and neighbours outlive it.
  Courier(HopOwner& owner, Neighbours& neighbours, CourierOptions options,
          std::unique_ptr<RoutingPolicy> policy = make_rendezvous_policy());

  // ---- hops ----
  void open(HopSpec spec, TimePoint now);
  // Ends the hop; children are released. No-op when there is none.
  void close(const MicrobatchId& microbatch) { hops_.drop(microbatch, HopBook::Drop::kReleased); }
  // Our own entry is committed (the trainer: its path is logged): tells the winning child once, renews no more. The hop
  // is kept until forget(): a late word about the winning claim must not be answered with a Release that could overtake
  // the COMMIT.
  void commit(const MicrobatchId& microbatch) { hops_.commit(microbatch); }
  void forget(const MicrobatchId& microbatch) { hops_.drop(microbatch, HopBook::Drop::kUnsaid); }
  // Our entry learnt that a gradient waits elsewhere.
  void take(const MicrobatchId& microbatch, const GradientHint& hint, TimePoint now);
  // The gradient that came could not be used (not finite, malformed): that child is out, another is asked. Only where
  // it is its sender's fault the sender is suspected.
  enum class Fault : bool { kUnknown, kSenders };
  void reject(const MicrobatchId& microbatch, const std::string& why, TimePoint now, Fault fault = Fault::kSenders);

  // ---- what comes in ----
  // Whatever it said, it is not silent.
  void note_heard(const Session& from, TimePoint now);
  // True: the message was for the courier alone. Frames of a gradient that nobody wants are refused; those of one that
  // is wanted are awaited. REQUIRES: the neighbours admit `from`.
  bool on_message(const Remote& from, const Message& message, TransferId transfer, TimePoint now);
  // True: they were a gradient's.
  bool on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames, TimePoint now);
  void on_link_up(const Remote& remote, TimePoint now);
  Session on_link_down(const Remote& remote, TimePoint now);  // returns as Neighbours does
  // Ends the claims on sessions that are no members any more. REQUIRES: the signature was checked.
  Roster::Change on_members(const MemberList& list, TimePoint now);
  // Fires timers and retries, renews claims. Call every few ten milliseconds. `lows`: of the trainers that this process
  // is itself. Every member hears of them with the renewals, and hops that are committed below them are forgotten.
  void tick(TimePoint now, const std::vector<Low>& lows = {});

  // ---- look ----
  const HopBook& hops() const { return hops_; }
  // Nobody of the stage that is asked answers: a hop ran out of patience, and no word of any came since. While this is
  // so every hop is stranded from its beginning.
  bool stranded() const { return stranded_; }
  const CourierCounters& counters() const { return counters_; }

 private:
  struct Choice {
    std::optional<Session> peer;
    bool full = false;  // somebody was passed over for want of room
    bool room = false;  // somebody has room, though maybe not for this microbatch
  };

  void on_busy(const Session& from, const Busy& message, TimePoint now);
  void on_have(const Session& from, const Have& message, TimePoint now);
  void on_gone(const Session& from, const Gone& message, TimePoint now);
  // The frames are sent again, as key frames, within the same branch and the deadline that runs. Once a branch.
  void on_need_key_frame(const Session& from, const NeedKeyFrame& message, TimePoint now);
  void on_gradient_header(const Remote& from, const Gradient& message, TransferId transfer, TimePoint now);
  void on_gradient(const Session& from, const Gradient& message, std::vector<Bytes> frames, TimePoint now);
  // Its path begins with an entry that is not its sender's: the link proves the lie.
  void on_forged_path(const Session& from, const MicrobatchId& microbatch, TimePoint now);
  void on_progress(const Session& from, const Progress& message, TimePoint now);
  void on_waiting(const Session& from, const Waiting& message, TimePoint now);
  void on_session_over(const Session& session, TimePoint now);
  // A process of the stage that is asked is reached: a word about a claim came, or a link to it came up.
  void note_reached(TimePoint now);

  void arm(Hop& hop, TimePoint now);
  Choice ask(Hop& hop, TimePoint now);  // a new child, or a retry later
  void ask_peer(Hop& hop, const Session& peer, const std::optional<GradientHint>& hint, TimePoint now);
  Result<TransferId> send_forward(const Hop& hop, const Lease& lease, const Session& to,
                                  const std::optional<GradientHint>& hint, bool key);
  void enter(Hop& hop, Hop::Child& child, HopPhase phase, TimePoint now);
  void fire(Hop& hop, std::string_view cause, TimePoint now);
  void note_answer(Hop& hop, Hop::Child& child, TimePoint now);
  void note_accepted(Hop& hop, Hop::Child& child, TimePoint now);  // an answer that is no refusal
  void look_for_stranded(TimePoint now, bool away);
  void lose_child(Hop& hop, const Lease& lease, TimePoint now);  // Busy, Gone or its session over
  // `hinted`: its gradient waits somewhere, and a full peer has credits apart for that.
  Choice choose(Hop& hop, bool hinted, TimePoint now);
  void renew(const std::vector<Low>& lows);

  HopOwner& owner_;
  Neighbours& neighbours_;
  PeerHealth& health_;
  HopRates& rates_;
  const CourierOptions options_;
  const std::unique_ptr<RoutingPolicy> policy_;
  HopBook hops_;
  struct Incoming {
    Gradient header;
    TimePoint came;
  };
  std::map<InboundFrames, Incoming> gradients_;  // their frames are on the way
  TimePoint answered_;                           // the newest word of anybody
  TimePoint next_renewal_;
  bool stranded_ = false;                     // nobody answers
  std::map<std::uint64_t, Backoff> forgers_;  // by Session::peer_tag: how long it rested last
  LogThrottle said_;
  CourierCounters counters_;
};

}  // namespace shoal
