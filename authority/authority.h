#pragma once
// The one process that keeps the member list, fences sessions and decides rounds: control only, one writer of one
// durable log. It lives in the launching process and is made of nouns:
//
// clang-format off
//   DecisionLog      the log with the order of its effects      authority/decision_log.h
//   MemberBook       members, and the sessions that are over    authority/member_book.h
//   FailureDetector  which members live                         authority/failure_detector.h
//   MemberLists      the list, made and told                    authority/member_lists.h
//   MemberDecisions  members admitted, shown as serving, over   authority/member_decisions.h
//   StageRounds      the rounds of one stage                    authority/stage_rounds.h
//   RunCourse        steps, totals, the ends of a run           authority/run_course.h
//   Authority        the log's opening, replay and compaction; time; dispatch
//
// What is called when (by runtime/launch):
//   open(the log), sync_log()     first
//   start()                       once the trainer is there: decisions are told again, so that the trainer can bring
//                                 its own log up to date; the list is published. Membership timers begin anew
//   on_message                    JoinRequest (with the whereabouts that were found), Beat, Leave, Goodbye, Knock,
//                                 MembersQuery, RoundReport of peers
//   on_link_up, on_link_down      links
//   on_step                       allreduce: all microbatches of a step are committed; again after a restart
//   set_relays                    behind start(), and where they changed
//   set_status                    the run's totals changed
//   on_misconduct                 what the trainer saw of a member
//   finish(done)                  the run ends; then validation and saving, then end(reason)
//   give_up(done)                 instead of finish() or after it; then end(reason)
// clang-format on
//
// The rule of order: every decision (member added or changed, session over, round opened, round committed) is one
// record of the log and is durable before any message about it leaves; memory is changed when it is decided, and what
// leaves the process follows from a callback of the log's sync, in the order of the decisions (DecisionLog). An opening
// without a commit is an abandoned round. If the log fails nothing is decided any more (AuthorityPort::on_log_failure).
// docs/ROUNDS.md and docs/PROTOCOL.md have the tables, docs/DECISIONS.md the reasons.
//
// State machine without I/O, threads or clock of its own. Thread: loop only. Borrows: port and loop. Bounds: those of
// its nouns. The log does not grow with the run, see compact().
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "authority/authority_log.h"
#include "authority/authority_port.h"
#include "authority/decision_log.h"
#include "authority/failure_detector.h"
#include "authority/knocks.h"
#include "authority/member_book.h"
#include "authority/member_decisions.h"
#include "authority/member_lists.h"
#include "authority/placement.h"
#include "authority/run_course.h"
#include "authority/stage_rounds.h"
#include "common/event_loop.h"
#include "transport/messages.h"
#include "transport/transport.h"

namespace shoal {

class Authority {
 public:
  // Port and loop outlive it. ERRORS: kCorrupt (another run's log, or one that contradicts itself).
  static Result<std::unique_ptr<Authority>> open(AuthorityOptions options, AuthorityPort& port, EventLoop& loop,
                                                 AuthorityLog log);
  ~Authority();
  // Makes durable what the log said: a process that died before it synced leaves records that are read back and that a
  // power loss takes. `done` is not called when the authority is gone by then.
  void sync_log(std::function<void(Status)> done) { log_.sync(std::move(done)); }
  // REQUIRES: sync_log() succeeded, or the log was empty.
  void start();
  void on_message(const Remote& from, const Message& message);
  void on_link_up(const Remote& from);
  void on_link_down(const Remote& from) {  // ends no session
    detector_.on_link_down(from);
    if (MemberState* member = book_.find(from.session)) member->lists.on_link = false;
  }
  // Where its members can be dialled, by dialling them (runtime/launch/dial_back.h).
  void on_reach(const Session& session, const Whereabouts& found) {
    if (course_.takes_messages()) decisions_.show_reach(session, found);
  }
  // The relays of the run, from now on: on the list, told to members, and kept by the log. Said after start(), since
  // those of an earlier life stand there. ERRORS: kTooLarge (kRelaysMax, or no room on the list), kMalformed (not
  // "IP:port", one twice).
  Status set_relays(std::vector<RelayPlace> relays) {
    return course_.takes_messages() ? decisions_.set_relays(std::move(relays)) : Status();
  }
  // allreduce: all microbatches of the step are committed. Relayed to the members in front of the step's RoundOpen.
  void on_step(const Step& step) {
    if (course_.takes_messages()) course_.on_step(step);
  }
  // The trainer saw what a member did: its session ends, and its peer rests before it is admitted again.
  void on_misconduct(const Session& session, const std::string& what) {
    if (course_.started() && !course_.is_over()) decisions_.end_for_misconduct(session, what);
  }
  void set_status(const BeatAck& status) {
    course_.set_status(status);
  }  // run status for BeatAcks; list_epoch is filled in
  // Last rounds of every stage that someone serves; `done` when all are decided (or nothing is left to decide). No
  // round is opened from then on: the caller may list what is not secured. A stage's first last round may go without
  // members that are behind or rest because of a pair. A member that is behind is waited for and one that rests is
  // tried again, until another last round has them or their sessions end: for the budget of a round, three of the
  // longest jobs and `membership` after each. An attempt is made again at most eight times in a row.
  void finish(std::function<void()> done) { course_.finish(std::move(done)); }
  // Instead of finish(), or after it (whose `done` is not called any more): opens no round, abandons those under way,
  // and calls `done` once what was decided before is durable and told.
  void give_up(std::function<void()> done) { course_.give_up(std::move(done)); }
  void end(const std::string& reason);  // End to everybody; joiners get it too from now on
  // After end(): members that have not said Goodbye to it and showed life within the membership time.
  const std::set<Session>& unheard() const { return course_.unheard(); }
  const MemberList& members() const { return lists_.published(); }  // newest decided
  // Whether a JoinRequest of this session would admit nobody: it is or was a member, or the run has ended.
  bool knows(const Session& session) const { return course_.ended() || book_.knows(session); }
  bool step_done(StageId stage, StepId step) const;  // allreduce: this stage committed it
  std::vector<StageStatus> status() const;
  std::vector<MemberLife> lives() const { return detector_.lives(); }  // in the order of their sessions
  std::size_t log_bytes() const { return log_.bytes(); }
  const RoundTally& tally() const { return book_.tally(); }  // of the whole run
  // Puts the log into fewer bytes, aside: one that says the same in a few records, without openings, members that are
  // gone, and commits that no stage may go back behind; see RecordLog::compact. ERRORS: kTooLarge (a record would be),
  // kBusy (it is under way, or the log failed); `done` is not called then.
  Status compact(std::function<void(Status)> done);
  // How many members were looked at so far to see whether a round is due. A beat looks at those of its own stage.
  std::uint64_t looked_at() const;

 private:
  Authority(AuthorityOptions options, AuthorityPort& port, EventLoop& loop, std::unique_ptr<RecordLog> file);
  // What the log says, brought back into book and stages. Rounds that were opened and not committed are over: their
  // commit never left. ERRORS: kCorrupt (another run's log, or one that contradicts itself).
  Status replay(const LogRecord& record);
  Status replay_start(const LogStart& start) const;
  Status replay_over(const LogOver& over);
  void tell_again(const LogAgain& record);
  void tell_again(const LogOverAgain& record);
  void tick();
  void arm_tick();
  void check_memberships();
  void on_beat(const Remote& from, const Beat& beat);
  // What becomes of a member that holds a newer version than the log knows (docs/PROTOCOL.md); `before`: the phase that
  // it had before it said so. False: its session is over, and `member` is gone.
  bool keep_ahead(const MemberState& member, MemberPhase before, Version version);
  StageRounds& rounds_of(StageId stage) const { return *stages_[stage.value]; }

  const AuthorityOptions options_;
  AuthorityPort& port_;
  EventLoop& loop_;
  DecisionLog log_;
  MemberBook book_;
  FailureDetector detector_;
  MemberLists lists_;
  std::vector<std::unique_ptr<StageRounds>> stages_;
  RunCourse course_;
  Placement placement_;
  MemberDecisions decisions_;
  Knocks knocks_;
  std::vector<std::function<void()>> again_;  // until start(): what the log says is told again
  TimerId tick_timer_ = 0;
};

}  // namespace shoal
