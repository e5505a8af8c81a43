#pragma once
// The session's part of its stage's rounds: keeps what Round asks for until the ledger lets it happen, has the device
// and, beside it, the queue for large memory do it, and says what it changed. A round that was missed goes to CatchUp.
//
// Thread: loop only.   Borrows: what it is made with.   Bounds: one step of one round, one abandoned round, and the
// parts whose frames are on the way.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/lifetime.h"
#include "runtime/stage_peer/catch_up.h"
#include "runtime/stage_peer/stage_session.h"
#include "runtime/stage_peer/window_jobs.h"
#include "sync/round.h"

namespace shoal {

class RoundDesk final : private RoundHost {
 public:
  // REQUIRES: what it is made with outlives it.
  RoundDesk(const StageSession& session, Neighbours& neighbours, Ledger& ledger, Windows& windows,
            DeviceScheduler& device, ArenaState& arena, WindowJobs& writes);

  // Only the authority opens, commits and abandons a round.
  void on_open(const Remote& from, const RoundOpen& message);
  void on_commit(const Remote& from, const RoundCommit& message);
  void on_abandon(const Remote& from, const RoundAbandon& message);
  void on_part(const Remote& from, const RoundPart& message, TransferId transfer);
  void on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames);
  void forget_link(const PeerId& peer);  // what was on its way from there does not come
  // As StagePeer::catch_up.
  bool catch_up(Bytes image);
  // Starts the round's next step. REQUIRES: the device is idle. False: there is none, or the ledger does not let it
  // happen now.
  bool start_next();
  // The session is over. REQUIRES: the device is stopped.
  void cancel();

  bool active() const { return round_.active(); }
  // No step waits or is worked on, and nothing was missed.
  bool quiet() const { return std::holds_alternative<std::monostate>(step_) && beside_ == 0 && !behind(); }
  // A round that writes the parameters is open here: no inner step may.
  bool holds_parameters() const { return round_.active() && every_step_; }
  std::uint64_t sent_bytes() const { return sent_bytes_; }  // frames of pieces and sums, to other members
  std::optional<Version> behind() const { return catch_up_.behind(); }
  // The anchor that the device has when it comes to a job that is asked for now: a commit that runs, or runs next, is
  // done by then.
  Version anchor_for_next_job() const;

 private:
  struct ToContribute {
    RoundOpen open;
    std::function<void(Result<Contribution>)> done;
  };
  struct ToCommit {
    RoundOpen open;
    RoundCommit commit;
    std::function<void()> done;
  };

  // RoundHost
  Version version() const override { return arena_.version; }
  std::uint64_t payload_bytes_max() const override { return session_.executor->arena().size() * sizeof(float); }
  const OuterRule* rule(std::uint8_t rule_id) const override;
  void contribute(const RoundOpen& open, std::function<void(Result<Contribution>)> done) override;
  void run_aside(std::function<void()> job, std::function<void()> done) override {
    session_.aside.run(WorkKind::kAside, std::move(job), std::move(done));
  }
  void prepare(const RoundOpen& open, Payload reduced, std::function<void(Result<Digest>)> done) override;
  void commit(const RoundOpen& open, const RoundCommit& commit, std::function<void()> done) override;
  void abandon(const RoundOpen& open) override;
  void fell_behind(const RoundCommit& commit, bool secured, bool differs, const std::string& why) override;
  Carried carried(const Session& member) const override;
  void send_to_authority(Message message) override;
  void send_to_member(const Session& member, Message message, std::vector<Bytes> frames) override;

  // What goes through arrays that the device leaves alone (sync/outer_rule.h); meanwhile it starts nothing of a round.
  // `done` unless the round is over here by then.
  void run_beside(const RoundOpen& open, std::function<void(StageExecutor&)> job, std::function<void()> done);
  void run_abandon();
  bool may_commit(const ToCommit& commit) const;
  bool run_commit();
  bool run_contribute();
  std::shared_ptr<OuterRule> rule_of(const RoundOpen& open) const { return rules_.of(static_cast<RuleId>(open.rule)); }
  RoundContext context_of(const RoundOpen& open) const;

  bool is_authority(const Remote& remote) const { return remote.peer == session_.authority; }

  const StageSession& session_;
  Neighbours& neighbours_;
  Ledger& ledger_;
  Windows& windows_;
  DeviceScheduler& device_;
  ArenaState& arena_;
  WindowJobs& writes_;
  const OuterRules rules_;
  CatchUp catch_up_;
  std::variant<std::monostate, ToContribute, ToCommit> step_;  // waits for the ledger or the device
  std::size_t beside_ = 0;                                     // under way
  bool every_step_ = false;                                    // rule of the round that was contributed to last
  std::optional<Version> committing_;                          // the device is at it
  std::optional<RoundOpen> abandoned_;  // the device has not heard yet; the next round's step may wait behind it
  std::map<InboundFrames, RoundPart> parts_on_the_way_;
  std::uint64_t sent_bytes_ = 0;
  Round round_;
  Lifetime lifetime_;
};

}  // namespace shoal
