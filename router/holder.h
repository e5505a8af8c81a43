#pragma once
// Who holds the only copy of what the next hop needs: the trainer for stage 0, a peer for the stage after its own. Puts
// together whom there is (Roster), what was measured of them (HopRates), whom a hop asks (RoutingPolicy) and what
// becomes of it (Courier), and speaks for them over the links: sessions become peers here, and only here.
//
// State machine without I/O, threads or clock: `now` is passed in, messages leave by Links.
// Thread: loop only.   Borrows: port and links.   Bounds: the courier's hops, the list's members, the links' transfers.
// Errors: what cannot be sent is logged and dropped, except where a Result says so; the courier asks again by itself.
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "router/courier.h"
#include "router/roster.h"
#include "transport/links.h"

namespace shoal {

struct HolderOptions {
  Session self;
  std::optional<StageId> ahead;  // the stage that is asked and measured; none: the last stage's holder, who asks nobody
  std::optional<PeerId> authority;  // may speak and is spoken to although no list names it; none: this process is it
  Duration lease = 4s;              // L: claims are renewed six times within it
};

// What a holder asks of the process that it lives in. Calls come in the turn of the call that caused them.
class HolderPort {
 public:
  virtual ~HolderPort() = default;
  // Of the trainers that this process is itself: every member hears of them with the renewals. A peer has none.
  virtual std::vector<Low> lows() = 0;
  // Of this Forward: tokens, then the activation (not to stage 0). `key`: frames that need no base.
  virtual std::vector<Bytes> frames_of(const Session& to, const Forward& message, bool key) = 0;
  // As in CourierPort.
  virtual void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) = 0;
  virtual void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) = 0;
  virtual void on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) = 0;
  virtual void write(const EventRecord& event) = 0;  // of a claim, into the process's EventLog
};

class Holder final : private CourierPort {
 public:
  static constexpr Duration kMeasurePeriod = 250ms;  // of the links ahead, at most so often and when one is chosen
  static constexpr Duration kLearningPeriod = 10s;   // of addresses that were learned before

  // REQUIRES: port and links outlive it.
  Holder(HolderPort& port, Links& links, HolderOptions options,
         std::unique_ptr<RoutingPolicy> policy = make_rendezvous_policy());

  // ---- hops: as in Courier ----
  void open(HopSpec spec, TimePoint now) { courier_.open(std::move(spec), now); }
  void close(const MicrobatchId& microbatch) { courier_.close(microbatch); }
  void commit(const MicrobatchId& microbatch) { courier_.commit(microbatch); }
  void forget(const MicrobatchId& microbatch) { courier_.forget(microbatch); }
  void take(const MicrobatchId& microbatch, const GradientHint& hint, TimePoint now) {
    courier_.take(microbatch, hint, now);
  }
  void reject(const MicrobatchId& microbatch, const std::string& why, TimePoint now) {
    courier_.reject(microbatch, why, now);
  }
  // As Roster::note_resting.
  void rest(const Session& session, TimePoint until) { roster_.note_resting(session, until); }

  // ---- what comes in ----
  // Whether it may claim or answer: the authority, or a member under its own key. Decisions: is_trainer().
  bool admits(const Remote& from) const;
  // Whether its key is that of the launching process: the trainer's decisions are believed from it alone.
  bool is_trainer(const Remote& from) const { return from.peer == options_.authority; }
  // True: the message was for the holder alone. Frames of a gradient that nobody wants are refused; those of one that
  // is wanted are awaited. REQUIRES: admits(from).
  bool on_message(const Remote& from, const Message& message, TransferId transfer, TimePoint now);
  // True: they were a gradient's.
  bool on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames, TimePoint now);
  void on_link_up(const Remote& remote, TimePoint now);
  // Returns the session that was at the other end; of a dial that failed: the member with that key.
  Session on_link_down(const Remote& remote, TimePoint now);
  // Learns where members are and ends the claims on those who are none any more. REQUIRES: the signature was checked.
  Roster::Change on_members(const MemberList& list, TimePoint now);
  // Fires hops' timers, renews claims. Call every few ten milliseconds.
  void tick(TimePoint now);
  // How far the run is, as the launching process says.
  void note_run(std::uint64_t targets, double loss);

  // ---- what goes out ----
  // ERRORS: kUnreachable (no member), kStale (another session answers there), and those of Links::send.
  Result<TransferId> send_to(const Session& to, Message message, std::vector<Bytes> frames);
  void send(const Session& to, Message message) override;

  // ---- look ----
  const Courier& courier() const { return courier_; }
  const Roster& roster() const { return roster_; }
  std::optional<PeerId> peer_of(const Session& session) const;  // of a member, or of the authority while it is known
  std::uint64_t run_targets() const { return run_targets_; }
  double run_loss() const { return run_loss_; }

 private:
  // CourierPort
  std::vector<Session> candidates(StageId stage, TimePoint now) override;
  Result<TransferId> send_forward(const Session& to, Forward message, bool key) override;
  void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) override;
  void drop_transfer(const Session& to, TransferId transfer) override;
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) override;
  void on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) override;
  void write(const EventRecord& event) override { port_.write(event); }

  void on_gradient(const Remote& from, const Gradient& message, TransferId transfer, TimePoint now);
  void measure_links(const std::vector<Session>& sessions, TimePoint now);
  void renew();

  HolderPort& port_;
  Links& links_;
  HolderOptions options_;
  std::unique_ptr<RoutingPolicy> policy_;
  HopRates rates_;
  Roster roster_;
  Courier courier_;
  std::optional<Session> authority_session_;
  std::map<InboundFrames, Gradient> gradients_;  // their frames are on the way
  TimePoint next_measure_, next_renewal_, next_learning_;
  std::uint64_t run_targets_ = 0;
  double run_loss_ = 0;
};

}  // namespace shoal
