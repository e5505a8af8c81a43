#pragma once
// The one process that keeps the member list, fences sessions and decides rounds: control only, one writer of one
// durable log. It lives in the launching process and is made of nouns:
//
// clang-format off
//   MemberBook   members, their life, the list             authority/member_book.h
//   StageRounds  the rounds of one stage                   authority/stage_rounds.h
//   Authority    the log with the order of its effects, its replay and compaction; dispatch; the ends of a run
//
// What is called when (by runtime/launch):
//   open(the log), sync_log()     first
//   start()                       once the trainer is there: decisions are told again, so that the trainer can bring
//                                 its own log up to date; the list is published. Membership timers begin anew
//   on_message                    JoinRequest, Beat, Leave, Goodbye, MembersQuery, RoundReport of peers
//   on_link_up, on_link_down      links
//   on_step                       allreduce: all microbatches of a step are committed; again after a restart
//   set_status                    the run's totals changed
//   on_misconduct                 what the trainer saw of a member
//   finish(done)                  the run ends; then validation and saving, then end(reason)
//   give_up(done)                 instead of finish() or after it; then end(reason)
// clang-format on
//
// The rule of order: every decision (member added or changed, session over, round opened, round committed) is one
// record of the log and is durable before any message about it leaves; memory is changed when it is decided, and what
// leaves the process follows from a callback of the log's sync, in the order of the decisions (decide()). An opening
// without a commit is an abandoned round. If the log fails nothing is decided any more (AuthorityPort::on_log_failure).
// docs/ROUNDS.md and docs/PROTOCOL.md have the tables, docs/DECISIONS.md the reasons.
//
// State machine without I/O, threads or clock of its own. Thread: loop only. Borrows: port and loop. Bounds: those of
// MemberBook and StageRounds; steps that are not done yet. The log does not grow with the run, see compact().
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "authority/admission_pace.h"
#include "authority/authority_log.h"
#include "authority/authority_port.h"
#include "authority/member_book.h"
#include "authority/placement.h"
#include "authority/stage_rounds.h"
#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/messages.h"
#include "transport/transport.h"

namespace shoal {

class Authority final : private StageHost {
 public:
  static constexpr Duration kSyncOverdue = 2s;  // of the log
  static constexpr Duration kSyncSaidAgain = 30s;

  // Port and loop outlive it. ERRORS: kCorrupt (another run's log, or one that contradicts itself).
  static Result<std::unique_ptr<Authority>> open(AuthorityOptions options, AuthorityPort& port, EventLoop& loop,
                                                 AuthorityLog log);
  ~Authority() override;
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  // Makes durable what the log said: a process that died before it synced leaves records that are read back and that a
  // power loss takes. `done` is not called when the authority is gone by then.
  void sync_log(std::function<void(Status)> done);
  // REQUIRES: sync_log() succeeded, or the log was empty.
  void start();
  void on_message(const Remote& from, const Message& message);
  void on_link_up(const Remote& from);
  void on_link_down(const Remote& from) { book_.on_link_down(from); }  // ends no session
  // allreduce: all microbatches of the step are committed. Relayed to the members in front of the step's RoundOpen.
  void on_step(const Step& step);
  // The trainer saw what a member did: its session ends, and its peer rests before it is admitted again.
  void on_misconduct(const Session& session, const std::string& what) {
    if (started_ && !is_over()) end_for_misconduct(session, what);
  }
  void set_status(const BeatAck& status) { status_ = status; }  // run status for BeatAcks; list_epoch is filled in
  // Last rounds of every stage that someone serves; `done` when all are decided (or nothing is left to decide). No
  // round is opened from then on: the caller may list what is not secured. A stage's first last round may go without
  // members that are behind or rest because of a pair. A member that is behind is waited for and one that rests is
  // tried again, until another last round has them or their sessions end: for the budget of a round, three of the
  // longest jobs and `membership` after each. An attempt is made again at most eight times in a row.
  void finish(std::function<void()> done);
  // Instead of finish(), or after it (whose `done` is not called any more): opens no round, abandons those under way,
  // and calls `done` once what was decided before is durable and told.
  void give_up(std::function<void()> done);
  void end(const std::string& reason);  // End to everybody; joiners get it too from now on
  // After end(): members that have not said Goodbye to it and showed life within the membership time.
  const std::set<Session>& unheard() const { return unheard_; }
  const MemberList& members() const { return book_.published(); }  // newest decided
  // Whether a JoinRequest of this session would admit nobody: it is or was a member, or the run has ended.
  bool knows(const Session& session) const { return ended_ || book_.knows(session); }
  bool step_done(StageId stage, StepId step) const;  // allreduce: this stage committed it
  std::vector<StageStatus> status() const;
  std::vector<MemberLife> lives() const { return book_.lives(); }  // in the order of their sessions
  std::size_t log_bytes() const { return log_->bytes(); }
  const RoundTally& tally() const { return book_.tally(); }  // of the whole run
  // Puts the log into fewer bytes, aside: one that says the same in a few records, without openings, members that are
  // gone, and commits that no stage may go back behind; see RecordLog::compact. ERRORS: kTooLarge (a record would be),
  // kBusy (it is under way, or the log failed); `done` is not called then.
  Status compact(std::function<void(Status)> done);
  // How many members were looked at so far to see whether a round is due. A beat looks at those of its own stage.
  std::uint64_t looked_at() const;

 private:
  Authority(AuthorityOptions options, AuthorityPort& port, EventLoop& loop, std::unique_ptr<RecordLog> log);

  // ---- authority_replay.cc: the log; decide() below is there too ----
  Status restore(const std::vector<LogRecord>& records);
  Status replay(const LogStart& record);
  Status replay(const LogMember& record);
  Status replay(const LogOver& record);
  Status replay(const LogOpen& record);
  Status replay(const LogCommit& record);
  Status replay(const LogStage& record);
  Status replay(const LogAgain& record);
  Status replay(const LogOverAgain& record);
  Result<StageRounds*> stage_in_log(StageId stage);

  // ---- authority.cc ----
  // StageHost
  void decide(const LogRecord& record, std::function<void()> effect) override;
  void end_session(const Session& session, const std::string& reason, bool fenced, std::function<void()> then) override;
  void end_for_misconduct(const Session& session, const std::string& what) override;
  // To a member that is left out of rounds nothing new is sent: no round may secure it.
  void show_serving(MemberState& member) override;
  const Step* step_after(StepId done) const override;
  std::uint64_t run_targets() const override { return status_.run_targets; }
  bool opens_rounds() const override;
  bool is_over() const override { return failed_ || ended_; }
  void check_finished() override;

  void fail_log(const Error& error);
  bool sync_overdue(TimePoint now);  // a sync of the log has not returned for kSyncOverdue; says so
  void tick();
  void arm_tick();
  void check_memberships();
  StageRounds& rounds_of(StageId stage) const { return *stages_[stage.value]; }
  MemberList build_list() const;
  void on_join(const Remote& from, const JoinRequest& request);
  // Its peer is not admitted now though the run has room, and is told why. False: nothing speaks against it.
  bool comes_too_early(const Remote& from);
  void admit(const Remote& from, const JoinRequest& request, const StageChoice& choice);
  void on_beat(const Remote& from, const Beat& beat);
  // What becomes of a member that holds a newer version than the log knows (docs/PROTOCOL.md). False: its session is
  // over, and `member` is gone.
  bool keep_ahead(const MemberState& member, MemberPhase before, Version version);
  void list_member(MemberState& member);  // logs and publishes its present state
  void on_leave(const Remote& from, const Leave& leave);

  const AuthorityOptions options_;
  AuthorityPort& port_;
  EventLoop& loop_;
  std::unique_ptr<RecordLog> log_;
  bool failed_ = false, started_ = false, ended_ = false, finishing_ = false;
  End end_;  // once ended_
  std::set<Session> unheard_;
  std::function<void()> finished_;
  std::vector<std::function<void()>> again_;  // until start(): what the log says is told again
  std::deque<TimePoint> syncs_;               // decisions whose effect has not run: when their sync was asked for
  TimePoint next_sync_notice_{};

  MemberBook book_;
  std::vector<std::unique_ptr<StageRounds>> stages_;
  Placement placement_;
  std::map<StepId, Step> steps_;  // not done by every stage when the newest came
  BeatAck status_;
  AdmissionPace admission_;
  TimerId tick_timer_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
