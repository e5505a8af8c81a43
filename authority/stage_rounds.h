#pragma once
// The rounds of one stage at the authority: when one opens and with whom, what its members report, whether it is
// committed, and what goes on between two of them. docs/ROUNDS.md has the table ("At the authority") and the stories:
// a member that missed a commit, a stage that goes back, two that cannot reach each other.
//
// clang-format off
// Called by the authority:
//   end_squatters, maybe_restore, maybe_open   each tick; maybe_open also after each beat, step, leave and end of a session
//   on_beat, then repeat        Beat
//   on_report                   RoundReport
//   held_without, then waits_for_round   Leave
//   on_joiner, on_link_up       a member that must fetch was admitted; a member's link is up
//   on_over                     before a session ends: afterwards no commit may name it
//   want_last, give_up          the run ends; tend_last, then finished: is anything left to decide
// clang-format on
//
// Thread: loop only.   Owns: its timers.   Borrows: all that it is made with.   Bounds: one open round.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "authority/authority_port.h"
#include "authority/decision_log.h"
#include "authority/failure_detector.h"
#include "authority/member_book.h"
#include "authority/open_round.h"
#include "authority/round_blames.h"
#include "authority/run_course.h"
#include "authority/stage_line.h"
#include "common/backoff.h"
#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/links.h"

namespace shoal {

class MemberDecisions;

class StageRounds {
 public:
  // Attempts in a row that a member answered with `failed` before it had contributed: then its session ends.
  static constexpr std::uint32_t kRoundRefusalsMax = 8;

  StageRounds(StageId stage, const AuthorityOptions& options, AuthorityPort& port, EventLoop& loop, DecisionLog& log,
              MemberBook& book, FailureDetector& detector, RunCourse& course, MemberDecisions& decisions);
  ~StageRounds();
  StageRounds(const StageRounds&) = delete;
  StageRounds& operator=(const StageRounds&) = delete;

  StageLine& line() { return line_; }
  const StageLine& line() const { return line_; }
  const RoundBlames& blames() const { return blames_; }
  StageStatus status() const;
  // Members that were looked at so far to see whether a round is due. A beat looks at those of its own stage.
  std::uint64_t looked_at() const { return looked_at_; }

  void maybe_open();
  // Each tick: sessions that neither fetched the state nor served in the time that others need for it.
  void end_squatters();
  void maybe_restore();  // goes back to an earlier version where nobody has held the newest for long enough
  void on_report(const Remote& from, const RoundReport& report);
  void on_joiner();  // a member that must fetch came
  void on_beat(MemberState& member, const Beat& beat);
  void on_link_up(MemberState& member);
  // Messages are not reliable: what it should have by now is sent again, at most once a second.
  void repeat(MemberState& member);
  // It wants to leave. False: nothing of it waits for a round, so that its session may end at once.
  bool waits_for_round(MemberState& member, const Leave& leave);
  void on_over(const Session& session, const PeerId& peer, bool fenced);
  // allreduce: why this peer is not admitted now.
  std::optional<std::string> keeps_out(const PeerId& peer) const {
    return diloco_active() ? std::nullopt : blames_.keeps_out(peer);
  }
  // Another serving member holds the newest version, or there is none yet.
  bool held_without(const Session& session) const { return !line_.secured || line_.held(members(), session); }

  void want_last();  // Authority::finish
  void tend_last();  // after the first last round: whether a member is still waited for
  bool finished();   // nothing is left to decide
  void give_up();    // no round any more; the open one is abandoned

  // Tells of a commit that goes back.
  void say_restored(const RoundCommit& commit, const RecentCommits::TakenBack& taken);

 private:
  const MembersOfStage& members() const { return book_.of(line_.stage); }
  bool diloco_active() const;
  bool rests(const MemberState& member) const { return blames_.rests(member); }
  // ---- opening ----
  const Step* next_step() const { return course_.step_after(line_.step_done); }
  bool leaver_waits() const;
  bool diloco_due() const;
  std::vector<Session> participants(bool step_round) const;
  bool enough_for_parts(std::size_t members);  // says so when not; then nobody waits for the last round
  void open_round(const Step* step, std::vector<Session> members);
  void send_open();
  std::uint64_t payload() const;  // bytes of what a member brings; 0: not known
  Duration budget_of(std::size_t members) const;
  // What a round's members may need until their devices are free for it: it takes its turns between their jobs.
  Duration job_allowance() const;
  // In which a member that fetches the state must have it: after that nothing waits for it.
  Duration fetch_patience() const;
  // ---- deciding ----
  void on_failed(const Remote& from, const RoundReport& report);
  // It answered the opening with `failed`, and brought nothing.
  void on_refused(MemberState& member, const RoundReport& report);
  void on_malformed(const Session& by, const Session& sender, const std::string& reason);
  void check_stall();
  void on_budget();
  void try_decide(bool grace_over);
  void name_contradicting(const OpenRound& round);  // REQUIRES: it is over
  void commit(const Digest& digest);
  void note_agreed(const OpenRound& round, const Digest& digest, Version version);
  void note_rate(const OpenRound& round);
  void abandon(const std::string& reason);
  OpenRound take_round();  // the stage has none any more
  void end_left_out();     // allreduce: their steps go on without them
  // ---- between rounds ----
  // In front of a commit that does not name it: the last one that does.
  void send_commit(const MemberState& member, const RoundCommit& commit);
  void note_fetch(MemberState& member, const Beat& beat);
  // No new round for so long, so that whoever fetches is not overtaken; not before `allowed_at`, which it moves on.
  bool hold(Duration time, TimePoint& allowed_at);
  void release_leavers(const std::vector<Session>& among);
  void restore_to(Version version);
  bool last_due() const;
  static bool awaited(const MemberState& member);  // it may hold what no last round has

  const AuthorityOptions& options_;
  AuthorityPort& port_;
  EventLoop& loop_;
  DecisionLog& log_;
  MemberBook& book_;
  FailureDetector& detector_;
  RunCourse& course_;
  MemberDecisions& decisions_;
  StageLine line_;
  RoundBlames blames_;
  std::optional<OpenRound> round_;
  TimePoint last_commit_at_{};
  TimePoint retry_at_{}, hold_until_{};
  Duration hold_for_{};  // from the end of the round that was open when it began; zero: that is over
  TimePoint join_hold_allowed_at_{}, fetch_hold_allowed_at_{};
  Backoff retry_pause_{100ms, 5s};          // between attempts that come to nothing
  double slowest_rate_ = 0;                 // bytes/s of a member in the slowest committed round; 0 = none yet
  bool too_few_said_ = false;               // too few members for the parts of a round
  std::optional<TimePoint> missing_since_;  // nobody holds the newest version
  bool gave_up_ = false;
  bool last_wanted_ = false;  // want_last(), and somebody may hold what no last round has
  bool last_made_ = false;    // one was committed
  TimePoint last_until_{};    // after it nobody is waited for, once last_made_
  std::size_t last_failures_ = 0;
  mutable std::uint64_t looked_at_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
