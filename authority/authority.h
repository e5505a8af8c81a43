#pragma once
// The one process that keeps the member list, fences sessions and decides rounds: control only, one writer of one
// durable log. State machine without I/O, threads or clock of its own; lives in the launching process. Thread: loop
// only. Bounds: limits::kStagesMax x kReplicasMax members; one open round a stage; steps that are not done yet; 16
// bytes a session that is over.
//
// Who calls what when (runtime's launch):
//   - open(the log), sync_log(), then start() once the trainer is there: it replays every decision, so that the trainer
//     can bring its own log up to date (merged entries, sessions over), and publishes the list. All membership timers
//     begin anew: the authority was away, not they.
//   - on_message: JoinRequest, Beat, Leave, Goodbye, MembersQuery, RoundReport of peers; on_link_up, on_link_down:
//   links.
//   - on_step: allreduce, all microbatches of a step are committed; again after a restart.
//   - set_status: the run's totals changed.
//   - the run ends: finish(done), then validation and saving, then end(reason); or give_up(done), then end(reason).
//
// Every decision (member added or changed, session over, round opened, round committed) is one record of the log and is
// durable before any message about it leaves. A round has two records: its opening (ids are never reused) and its
// commit; an opening without a commit is an abandoned round. If the log fails nothing is decided any more
// (AuthorityPort::on_log_failure).
//
// Rounds: one RoundOpen per stage and step (allreduce) or when the members' settled targets reach theirs (diloco). A
// round is committed when every member reported what it contributed and all members, or more than half of them after
// the grace time, report the same digest; else it is abandoned and retried among the next list. A fenced member's open
// round is decided first, so what an ended session had in no committed round can enter none. Members that missed a
// commit get it again when they come up or their beats show an older version.
//
// A round in which nothing moves at any member that is still at it is abandoned, however much of its budget is left:
// the members say so themselves (RoundReport, kWaiting). Two that blame each other though both beat are a pair that
// cannot reach each other; one of them is left out of rounds and of the list's serving members
// (authority/unreachable_pairs.h). Under allreduce the session of who is left out ends, since it misses steps, and the
// peer is admitted again for the trial; under diloco it keeps its work and catches up.
//
// Memory is changed when something is decided; what leaves the process follows from a callback of the log's sync, in
// the order of the decisions (decide()). What leaves without a decision of its own tells only what is durable:
// published_, lists_ and last_commit_sent.
//
// The log does not grow with the run: compact() puts one in its place that says the same in a few records. What is
// left out is what nobody needs again: openings, who was added and is gone, commits that no stage may go back behind.
//
// Lists: a member gets the whole list once, and then what changed of it, by version (authority/list_change.h), a few
// times a second at most and nothing when nothing changed. BeatAcks name the version that was told to all; who sees
// there that it missed one asks (MembersQuery) and gets the changes that it lacks, or the whole.
//
// Life: a member is fenced when it is silent, or when its device hangs. Silence is a time without a beat: `membership`,
// or twice the longest time between two of its beats lately (a process that gets little time of its machine). A device
// hangs when the job that it works at takes kJobFactor times the longest finished one of its kind in that session, and
// `membership` at least; the first of a kind that nothing heavier came before has kFirstJob. No such time passes while
// a sync of our own log is overdue: then nothing that we decide leaves, and who waits for it is not to blame.
//
// Behind: a member that says so fetches the state of a version that it missed. Rounds go on without it and do not count
// it among those who could take part. Two things wait for it, within bounds, since it needs no more than one fetch
// then: the end of a run, whose further last rounds take it in; and, when a fetch of it was overtaken by rounds, the
// stage's next round, for as long as that fetch took, at most a tenth of the time.
//
// Lost: a stage may lose all who held its newest version. Members that hold an earlier one (of a session before, or
// from a checkpoint) and do not serve say so in their beats. When everybody who may have had the newest is back without
// it, or after `restore_after`, the stage goes back: a new version that no round made has the content of the newest one
// that is still held, and what later rounds secured is taken back by name. Whom the log or this process never saw with
// a version is not believed that it has it.
//
// Ahead: a member whose beats show a newer version than the log knows. Nothing leaves before it is durable, so the log
// lost records: an older copy was put in its place, or the disk did not keep what it had synced. Such a member does not
// count as serving and takes part in no round. Once another one is ready at the stage's version its session is ended,
// and it joins again and fetches that. Until then it stays (StageStatus::ahead), since it holds what the log lost, and
// a person decides: the newer log put back ends it.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "authority/admission_pace.h"
#include "authority/authority_log.h"
#include "authority/authority_port.h"
#include "authority/authority_state.h"
#include "authority/list_history.h"
#include "authority/planner.h"
#include "authority/round_tally.h"
#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/messages.h"
#include "transport/transport.h"

namespace shoal {

class Authority {
 public:
  static constexpr Duration kFirstJob = 300s;     // of a kind in a session: nothing of it is measured
  static constexpr double kJobFactor = 4;         // times the longest measured
  static constexpr Duration kPatienceMax = 600s;  // whatever was measured
  static constexpr Duration kSyncOverdue = 2s;    // of the log
  static constexpr Duration kSlept = 1s;          // between two ticks: we slept, and nobody was silent meanwhile
  static constexpr Duration kSyncSaidAgain = 30s;
  // For a joiner that asks for a stage while another one has no member: others may be on their way there, and then
  // everybody gets what it asked for. Two repeats of a JoinRequest fit in.
  static constexpr Duration kWishPatience = 5s;
  static constexpr std::size_t kWishesMax = 256;  // that wait at a time; more are passed over at once

  // Borrows port and loop; they outlive it. ERRORS: kCorrupt (another run's log, or one that contradicts itself).
  static Result<std::unique_ptr<Authority>> open(AuthorityOptions options, AuthorityPort& port, EventLoop& loop,
                                                 AuthorityLog log);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  // Makes durable what the log said: a process that died before it synced leaves records that are read back and that a
  // power loss takes. `done` is not called when the authority is gone by then.
  void sync_log(std::function<void(Status)> done);
  // REQUIRES: sync_log() succeeded, or the log was empty.
  void start();
  // JoinRequest, Beat, Leave, Goodbye, MembersQuery, Step, RoundReport.
  void on_message(const Remote& from, const Message& message);
  void on_link_up(const Remote& from);
  void on_link_down(const Remote& from);  // ends no session
  // allreduce: all microbatches of the step are committed. Relayed to the members in front of the step's RoundOpen.
  void on_step(const Step& step);
  void set_status(const BeatAck& status) { status_ = status; }  // run status for BeatAcks; list_epoch is filled in
  // Last rounds of every stage that someone serves; `done` when all are decided (or nothing is left to decide). No
  // round is opened from then on: the caller may list what is not secured. A stage's first last round may go without
  // members that are behind or rest because of a pair. Who is behind is waited for and who rests is tried again, until
  // another last round has them or their sessions end: for the budget of a round, three of the longest jobs and
  // `membership` after each. An attempt is made again at most eight times in a row.
  void finish(std::function<void()> done);
  // Instead of finish(), or after it (whose `done` is not called any more): opens no round, abandons those under way,
  // and calls `done` once what was decided before is durable and told.
  void give_up(std::function<void()> done);
  void end(const std::string& reason);  // End to everybody; joiners get it too from now on
  // After end(): members that have not said Goodbye to it and showed life within the membership time.
  const std::set<Session>& unheard() const { return unheard_; }
  const MemberList& members() const { return published_; }  // newest decided
  // Whether a JoinRequest of this session would admit nobody: it is or was a member, or the run has ended.
  bool knows(const Session& session) const;
  bool step_done(StageId stage, StepId step) const;  // allreduce: this stage committed it
  std::vector<StageStatus> status() const;
  std::vector<MemberLife> lives() const;  // in the order of their sessions
  std::size_t log_bytes() const { return log_->bytes(); }
  const RoundTally& tally() const { return tally_; }  // of the whole run
  // Puts the log into fewer bytes, aside; see RecordLog::compact. ERRORS: kTooLarge (a record would be), kBusy (it is
  // under way, or the log failed); `done` is not called then.
  Status compact(std::function<void(Status)> done);
  // How many members were looked at so far to see whether a round is due. A beat looks at those of its own stage.
  std::uint64_t looked_at() const { return looked_at_; }

 private:
  Authority(AuthorityOptions options, AuthorityPort& port, EventLoop& loop, std::unique_ptr<RecordLog> log);

  // ---- authority_replay.cc: what the log says, and the log that says it in fewer records ----
  Status restore(const std::vector<LogRecord>& records);
  Status replay(const LogStart& record);
  Status replay(const LogMember& record);
  Status replay(const LogOver& record);
  Status replay(const LogOpen& record);
  Status replay(const LogCommit& record);
  Status replay(const LogBase& record);
  Status replay(const LogShares& record);
  Status replay(const LogSessions& record);
  Status replay(const LogStage& record);
  Status replay(const LogNamed& record);
  Status replay(const LogAgain& record);
  Status replay(const LogOverAgain& record);
  Status contradicts(const std::string& what) const;
  std::vector<LogRecord> compacted() const;
  void compact_stage(const StageState& stage, std::vector<LogRecord>& records) const;
  // ---- authority.cc: log, messages ----
  // Appends, and runs `effect` once it is durable; effects run in the order of the calls.
  void decide(const LogRecord& record, std::function<void()> effect);
  void fail_log(const Error& error);
  void send_to_session(const Session& session, Message message);
  void tick();
  // Whether a sync of the log has not returned for kSyncOverdue; says so.
  void forgive(Duration silence);  // of every member: it was ours
  bool sync_overdue(TimePoint now);
  void arm_tick();
  StageState* stage_of(StageId stage);
  MemberState& place_member(const Session& session, StageId stage);  // makes it where there is none
  void drop_member(const Session& session);

  // ---- authority_lists.cc ----
  MemberList build_list() const;
  // The signed list with one more member, and without `older`.
  bool fits_list(const std::vector<std::string>& addresses, const std::optional<Session>& older) const;
  void publish(MemberList list);
  void tell_list();
  // To who has the one of this epoch and id.
  void send_list(MemberState& member, Epoch epoch, std::uint64_t id);
  void name_newer_list(MemberState& member, Epoch epoch);

  // ---- authority_members.cc ----
  void on_join(const Remote& from, const JoinRequest& request);
  void refuse_join(const Remote& from, const std::string& reason);
  JoinWish wish_of(const JoinRequest& request) const;
  // A joiner's wish cannot be granted yet. True: its request goes unanswered, and it repeats it.
  bool wish_waits(const Session& session);
  void on_beat(const Remote& from, const Beat& beat);
  void note_fetch(MemberState& member, const Beat& beat);
  // No new round of the stage for `time`, so that who fetches is not overtaken.
  void hold_rounds(StageState& stage, Duration time);
  static void note_life(MemberState& member, const Beat& beat, TimePoint now, Duration membership);
  void update_serving(MemberState& member, const Beat& beat);
  static void note_had(StageState& stage, const MemberState& member);
  void show_serving(MemberState& member);
  // What becomes of a member that is ahead. False: its session is over, and `member` is gone.
  bool keep_ahead(MemberState& member, Version version);
  void repeat_what_it_missed(MemberState& member);
  // In front of a commit that does not name it: the last one that does.
  void send_commit(const MemberState& member, const RoundCommit& commit);
  void note_named(const RoundCommit& commit);
  void on_leave(const Remote& from, const Leave& leave);
  // Whether the stage's anchor, if it has one, stays when this member goes.
  bool held_without(const StageState& stage, const Session& session) const;
  void list_member(MemberState& member);  // logs and publishes its present state
  // The session is over: its open round is decided, the list follows. `then` runs after the list left.
  void end_session(const Session& session, const std::string& reason, bool fenced, std::function<void()> then = {});
  void check_memberships(TimePoint now);
  Duration silence_patience(const MemberState& member) const;
  Duration job_patience(const MemberState& member) const;
  // What a round's members may need until their devices are free for it: it takes its turns between their jobs.
  Duration job_allowance(const StageState& stage) const;
  // Why it is to be fenced; empty: it lives.
  std::string dead_because(const MemberState& member, TimePoint now) const;
  // To a session that is no member: Goodbye if it left, else Fenced.
  void tell_over(const Remote& to);
  JoinAnswer join_answer(const MemberState& member) const;

  // ---- authority_rounds.cc: opening; authority_decide.cc: deciding; authority_pairs.cc: who is left out ----
  bool diloco_active(const StageState& stage) const;
  void maybe_open(StageState& stage);
  const Step* next_step(const StageState& stage) const;
  bool diloco_due(const StageState& stage) const;
  std::vector<Session> participants(const StageState& stage, bool step_round) const;
  void open_round(StageState& stage, const Step* step, std::vector<Session> members);
  void send_open(StageState& stage);
  void on_report(const Remote& from, const RoundReport& report);
  void try_decide(StageState& stage, bool grace_over);
  // The digest more than half of the members agree on, if any, with how many.
  std::optional<std::pair<Digest, std::size_t>> best_vote(const OpenRound& round) const;
  bool sums_add_up(const OpenRound& round, const Digest& digest) const;
  void commit_round(StageState& stage, const Digest& digest);
  void abandon_round(StageState& stage, const std::string& reason);
  void stop_round_timers(OpenRound& round);
  void member_leaves_round(StageState& stage, const Session& session);
  bool leaver_waits(const StageState& stage) const;
  // A member says that nothing moves: abandoned when nothing moves anywhere.
  void check_stall(StageState& stage);
  void on_budget(StageState& stage);
  void note_rate(StageState& stage, const OpenRound& round);
  // It answered the opening with `failed`, and brought nothing.
  void on_refused_round(StageState& stage, MemberState& member, const RoundReport& report);
  // Ends the session for what it did: its peer rests before it is admitted again.
  void end_for_misconduct(const Session& session, const std::string& what);
  void blame_silent(StageState& stage, const Session& by, const Session& silent);
  // Ends the attempt: who got it has no sum to pass on, and would be named silent by the others.
  void blame_malformed(StageState& stage, const Session& by, const Session& sender, const std::string& reason);
  // The failed attempt's blames into the stage's book, and into the counts of who was silent.
  void settle_blames(StageState& stage, const OpenRound& round);
  void forget_proven_pairs(StageState& stage, const OpenRound& round, const Digest& digest);
  bool rests(const MemberState& member) const;
  bool beats(const MemberState& member) const;
  // It would not hear of a round that opens now: its link is down, or it is silent.
  bool away(const MemberState& member) const;
  std::optional<std::string> left_out_until(const PeerId& peer) const;  // allreduce: why it is not admitted
  // allreduce: their steps go on without them.
  void end_left_out(StageState& stage);
  Duration budget_of(const StageState& stage, std::size_t members) const;
  // In which a member that fetches the state must have it: no longer does anything wait for it.
  Duration fetch_patience(const StageState& stage) const;
  std::uint64_t payload_of(const StageState& stage) const;  // bytes; 0: not known
  // Whether a round of so many can send its parts; says so when it cannot. Then nobody waits for the last one.
  bool enough_for_parts(StageState& stage, std::size_t members);
  void release_leavers(StageState& stage, const std::vector<Session>& members);

  // ---- authority_restore.cc ----
  // Nobody holds the newest version for long enough: goes back, where somebody holds an earlier one.
  void maybe_restore(StageState& stage, TimePoint now);
  void restore_to(StageState& stage, Version version);
  // Its peer was there with that version or a later one: else its word that it has it is worth nothing.
  static bool may_have(const StageState& stage, const Session& session, Version version);
  // The newest version of those that members hold and that it may go back to.
  std::optional<Version> restorable(const StageState& stage) const;
  void say_restored(const RoundCommit& commit, const RecentCommits::TakenBack& taken);
  // Whether it is worth waiting for somebody who may have the newest version and is not here.
  bool one_may_come(const StageState& stage) const;
  // The stage's newest version from now on is that of `commit`. `taken`: where it goes back. REQUIRES: it follows the
  // newest.
  void note_commit(StageState& stage, const RoundCommit& commit, const RecentCommits::TakenBack& taken = {});
  void note_over(const Session& session, StageId stage, const std::string& reason);
  void forget_done_steps();
  void check_finished();
  bool stage_finished(const StageState& stage) const;
  // finish(): one is to be opened now.
  bool last_round_due(const StageState& stage) const;
  // May hold what no last round has.
  static bool awaited(const MemberState& member);
  // After the first one: who is still waited for.
  void tend_last_rounds(StageState& stage);

  AuthorityOptions options_;
  AuthorityPort& port_;
  EventLoop& loop_;
  std::unique_ptr<RecordLog> log_;
  bool failed_ = false, started_ = false, ended_ = false, finishing_ = false, gave_up_ = false;
  End end_;  // once ended_
  std::set<Session> unheard_;
  std::function<void()> finished_;
  std::vector<std::function<void()>> again_;  // until start(): what the log says is told again
  std::size_t undurable_ = 0;                 // decisions whose effect has not run
  std::deque<TimePoint> syncs_;               // of these, when their sync was asked for
  TimePoint next_sync_notice_{};

  std::map<Session, MemberState> members_;  // place_member() and drop_member() alone add and remove
  mutable std::uint64_t looked_at_ = 0;     // members, to see whether a round is due
  std::map<Session, bool> over_;            // true: it left, false: fenced
  std::deque<LogOverAgain> over_lately_;    // the newest kOverAgain of them
  RoundTally tally_;
  std::map<Session, TimePoint> wishes_;  // joiners that wait for the stage that they asked for, since when
  std::vector<StageState> stages_;
  std::map<StepId, Step> steps_;      // not done by every stage
  std::map<PeerId, Session> linked_;  // peers whose link is up
  Epoch epoch_;                       // of the list; counts the decisions that change it
  MemberList published_;
  bool list_dirty_ = false;  // versions changed since published_
  ListHistory lists_;        // those that were told
  TimePoint next_list_{};    // is told not before
  TimerId list_timer_ = 0;
  BeatAck status_;
  AdmissionPace admission_;
  TimerId tick_timer_ = 0;
  TimePoint last_tick_{};
  Lifetime lifetime_;
};

}  // namespace shoal
