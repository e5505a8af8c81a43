#pragma once
// The holder half of the protocol: for every microbatch this process holds, who of the next stage works on it, and what
// happens when they do not answer. It lives in router/holder.h.
//
// State machine without I/O, threads or clock: events come in with `now`, messages go out through CourierPort. Thread:
// loop only. A hop is waiting (no gradient yet) or won. Its timer belongs to the hop, not to a branch, and is armed
// whenever the hop waits; it runs only while this process listens. What restarts it is news of the newest child: sent,
// below, backward (HopPhase); a child that is silent, or that says it is stranded, fires it as well. A hop is stranded
// itself when nobody who can be asked has said a word about its claims for longer than first words take here: the
// holder above is told, and asks another replica. Busy is a word, and so is every beat that names a claim: who waits
// for a slow stage is not stranded, nor who waits for room in one that is full (PeerCredits). Bounds: kChildrenMax
// children a hop, one more for a re-point; hops are as many as the ledger's entries (or the trainer's open
// microbatches).
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/backoff.h"
#include "common/ids.h"
#include "common/result.h"
#include "common/time.h"
#include "events/event_record.h"
#include "router/peer_credits.h"
#include "router/policy.h"
#include "router/rates.h"
#include "transport/links.h"
#include "transport/messages.h"

namespace shoal {

// Who of the next stage kept something of a sample, so that less crosses to them.
struct KnownBase {
  std::vector<Session> holders;
  std::uint64_t frame_bytes = 0;  // as HopSpec.frame_bytes, to one of them
};

struct HopSpec {
  MicrobatchId microbatch;
  SampleId sample;
  std::uint32_t epoch = 0;
  ForwardKind kind = ForwardKind::kTrain;
  std::vector<Version> versions;  // as Forward.versions
  StepId step;
  StageId to;                     // the stage that is asked
  std::vector<Session> above;     // as Forward.above: this process last
  std::uint64_t frame_bytes = 0;  // about what a Forward's frames weigh
  KnownBase base{};
  std::optional<GradientHint> hint;  // a gradient for our own entry waits there: Take first
};

// What becomes of a branch's frames. Each kSent is followed by exactly one of the others, unless the courier itself
// ends.
enum class BranchEnd : std::uint8_t {
  kSent,     // handed to the link (again after an end: a key frame for a claim that had joined another's entry)
  kSettled,  // our own entry is committed, and this branch won its hop: what it sent is what counted
  kAborted,  // anything else: lost, refused, released, or answered Have, when another's frames were used
};

class CourierPort {
 public:
  virtual ~CourierPort() = default;
  // Sessions of `stage` that are members, serving and can be dialled.
  virtual std::vector<Session> candidates(StageId stage, TimePoint now) = 0;
  // Sends the message with the encoded frames of its microbatch. `key`: in frames that need no base, since the receiver
  // lacks the one that was named; then, and for the first time, under the same lease.
  virtual Result<TransferId> send_forward(const Session& to, Forward message, bool key) = 0;
  // For codecs that keep bases. Never calls the courier.
  virtual void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) = 0;
  virtual void send(const Session& to, Message message) = 0;
  virtual void drop_transfer(const Session& to, TransferId transfer) = 0;
  // The first gradient of a hop: from now on it is won.
  virtual void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) = 0;
  // No peer of the stage can be asked (again called when that ends, with parked = false).
  virtual void on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) = 0;
  virtual void write(const EventRecord& event) = 0;  // of a claim, into the process's EventLog
};

struct CourierCounters {
  std::uint64_t branches = 0;  // children beyond a hop's first
  std::uint64_t timers = 0;    // hop timers that fired
  std::uint64_t busy = 0, gone = 0, repoints = 0, late = 0, key_frames = 0;
  std::uint64_t stranded = 0;   // times that a hop became so
  std::uint64_t looked_at = 0;  // hops, by ticks: none that is committed
};

class Courier {
 public:
  static constexpr std::size_t kChildrenMax = 2;
  // Nothing at all is heard for so long, in time that this process listened: four beats, or twice the longest pause
  // that the session made lately while it had claims of ours and was not silent yet. Whoever beats late for want of its
  // machine's time or of its line is given more, and who froze teaches no patience.
  static constexpr Duration kSilence = 1000ms, kSilenceMax = 4s;
  static constexpr int kPauseFades = 16;  // a pause counts less by the 16th part of the time that is waited after it
  // More between two ticks is not listened to: the words of others may wait in our own loop, or in our sockets.
  static constexpr Duration kListenMax = 250ms;
  static constexpr Duration kBackoffMin = 50ms, kBackoffMax = 1s;
  // A peer is not asked for a microbatch of which it said that its entry takes no more claims now, or that it cannot
  // serve it.
  static constexpr Duration kCrowdedFor = 50ms, kUnfitFor = 500ms;
  // Of a child that was stranded: what its attempt took, and twice as long after each one more.
  static constexpr Duration kStrandedMin = 1s, kStrandedMax = 60s;

  // REQUIRES: port, policy and rates outlive it.
  Courier(CourierPort& port, const RoutingPolicy& policy, HopRates& rates, Session self);

  void open(HopSpec spec, TimePoint now);
  bool holds(const MicrobatchId& microbatch) const { return hops_.contains(microbatch); }
  bool waiting(const MicrobatchId& microbatch) const;
  SampleId sample_of(const MicrobatchId& microbatch) const {
    return hops_.at(microbatch).spec.sample;
  }  // REQUIRES: holds
  // Ends the hop; children are released. No-op when there is none.
  void close(const MicrobatchId& microbatch, ReleaseWhy why);
  // Our own entry is committed (the trainer: its path is logged): tells the winning child once, renews no more. The hop
  // is kept until forget(): a late word about the winning claim must not be answered with a Release that could overtake
  // the COMMIT.
  void commit(const MicrobatchId& microbatch);
  void forget(const MicrobatchId& microbatch);
  // Forgets what was committed below the low-water mark.
  void forget_below(std::uint64_t trainer, std::uint64_t low);
  // Our entry learnt that a gradient waits elsewhere.
  void take(const MicrobatchId& microbatch, const GradientHint& hint, TimePoint now);
  // The gradient that came could not be used (not finite, malformed): that child is out, another is asked.
  void reject(const MicrobatchId& microbatch, const std::string& why, TimePoint now);

  void on_busy(const Session& from, const Busy& message, TimePoint now);
  void on_have(const Session& from, const Have& message, TimePoint now);
  void on_gone(const Session& from, const Gone& message, TimePoint now);
  // The frames are sent again, as key frames, within the same branch and the deadline that runs. Once a branch.
  void on_need_key_frame(const Session& from, const NeedKeyFrame& message, TimePoint now);
  // A gradient's header came: false = its lease is not ours any more or the hop is won; refuse the frames (the Release
  // is sent here).
  bool wants(const Session& from, const Gradient& message, TimePoint now);
  void on_gradient(const Session& from, const Gradient& message, std::vector<Bytes> frames, TimePoint now);
  void on_progress(const Session& from, const Progress& message, TimePoint now);
  void on_waiting(const Session& from, const Waiting& message, TimePoint now);
  void on_heard(const Session& from, TimePoint now);
  // Somebody of the stage that is asked is reached: a word about a claim came, or a link to it came up.
  void on_reached(TimePoint now);
  void on_link_down(const Session& session, TimePoint now);
  void on_session_over(const Session& session, TimePoint now);

  // Fires timers and retries. Call every few ten milliseconds while size() > 0.
  void tick(TimePoint now);
  // Claims to renew, by session.
  std::map<Session, std::vector<Renewal>> renewals() const;

  std::size_t size() const { return hops_.size(); }
  std::size_t parked() const { return parked_; }
  bool stranded(const MicrobatchId& microbatch) const;  // as of the last tick
  // Nobody of the stage that is asked answers: a hop ran out of patience, and no word of any came since. While this is
  // so every hop is stranded from its beginning.
  bool stranded() const { return stranded_; }
  const CourierCounters& counters() const { return counters_; }
  // The session whose gradient won, and its lease.
  std::optional<Session> won_by(const MicrobatchId& microbatch) const;

 private:
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
  };
  // It computed this microbatch and could not hand it on: to ask it again costs that once more.
  struct WasStranded {
    TimePoint until;  // not asked before, unless the next stage answers it again
    Backoff rest{kStrandedMin, kStrandedMax};
  };
  struct Hop {
    HopSpec spec;
    std::vector<Child> children;         // oldest first
    std::set<Session> ever;              // sessions that were ever asked
    std::map<Session, TimePoint> avoid;  // would not have this microbatch: not before then
    std::map<Session, WasStranded> was_stranded;
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
  };
  struct Choice {
    std::optional<Session> peer;
    bool full = false;  // somebody was passed over for want of room
    bool room = false;  // somebody has room, though maybe not for this microbatch
  };

  struct Heard {
    Duration last{0};   // word, in time that was listened
    Duration pause{0};  // the longest between two words, lately
  };

  Hop* find(const Lease& lease, const Session& from);
  Child* child_of(Hop& hop, const Lease& lease);
  void arm(Hop& hop, TimePoint now);
  Choice ask(Hop& hop, TimePoint now);  // a new child, or a retry later
  void ask_peer(Hop& hop, const Session& peer, const std::optional<GradientHint>& hint, TimePoint now);
  Forward forward_of(const Hop& hop, const Lease& lease);
  void frames_sent(const MicrobatchId& microbatch, Child& child, TransferId transfer);
  void end_branch(const MicrobatchId& microbatch, Child& child, BranchEnd end);
  void fire(Hop& hop, std::string_view cause, TimePoint now);
  void note_answer(Hop& hop, Child& child, TimePoint now);
  void note_accepted(Hop& hop, Child& child, TimePoint now);  // an answer that is no refusal
  void note_stranded(Hop& hop, const Child& child, TimePoint now);
  void look_for_stranded(TimePoint now, bool away);
  bool overdue(const Hop& hop, TimePoint now) const;
  // What the timer was armed with, or what has been measured since, if that is longer; 0 = liveness only.
  Duration patience_of(const Hop& hop) const;
  void retry_later(Hop& hop, TimePoint now);
  void make_room(Hop& hop, std::size_t limit);                   // fewer children than `limit`: the oldest go
  void lose_child(Hop& hop, const Lease& lease, TimePoint now);  // Busy, Gone or its session over
  void drop_child(Hop& hop, const Lease& lease, std::optional<ReleaseWhy> release);
  void set_parked(Hop& hop, bool parked);
  // `hinted`: its gradient waits somewhere, and a full peer has credits apart for that.
  Choice choose(const Hop& hop, bool hinted, TimePoint now) const;
  void give_back(Child& child);  // its credit
  Duration listened(TimePoint now) const { return listened_ + std::min(now - ticked_, kListenMax); }
  static Duration silence_of(const Heard& heard) { return std::clamp(2 * heard.pause, kSilence, kSilenceMax); }
  bool silent(const Hop& hop, TimePoint now) const;  // the newest child

  CourierPort& port_;
  const RoutingPolicy& policy_;
  HopRates& rates_;
  PeerCredits credits_;
  Session self_;
  std::uint64_t next_lease_ = 1;
  std::map<MicrobatchId, Hop> hops_;  // ordered: timers and renewals run in a fixed order
  std::set<MicrobatchId> active_;     // of these, not committed: a long round keeps many that are
  std::unordered_map<Lease, MicrobatchId> by_lease_;
  std::unordered_map<Session, Heard> heard_;
  TimePoint ticked_;
  Duration listened_{0};    // until then
  TimePoint answered_;      // the newest word of anybody
  bool stranded_ = false;   // nobody answers
  std::size_t parked_ = 0;  // hops that are
  CourierCounters counters_;
};

}  // namespace shoal
