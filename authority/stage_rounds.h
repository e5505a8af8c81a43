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
#include "authority/round_opening.h"
#include "authority/run_course.h"
#include "authority/stage_line.h"
#include "authority/stage_restore.h"
#include "authority/stage_times.h"
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

  StageLine& line() { return line_; }
  const StageLine& line() const { return line_; }
  const RoundBlames& blames() const { return blames_; }
  StageStatus status() const { return line_.status(members(), restore_.missing_for(), options_.restore_after); }
  // Members that were looked at so far to see whether a round is due. A beat looks at those of its own stage.
  std::uint64_t looked_at() const { return looked_at_; }

  void maybe_open();
  // Each tick: sessions that neither fetched the state nor served in the time that others need for it.
  void end_squatters();
  void maybe_restore();  // goes back to an earlier version where nobody has held the newest for long enough
  void on_report(const Remote& from, const RoundReport& report);
  void on_joiner() { times_.on_joiner(round_.has_value()); }  // a member that must fetch came
  void on_beat(MemberState& member, const Beat& beat) { times_.on_beat(member, beat, line_, round_.has_value()); }
  void on_link_up(MemberState& member) { restore_.on_link_up(member, round_); }
  // Messages are not reliable: what it should have by now is sent again, at most once a second.
  void repeat(MemberState& member) { restore_.repeat(member, round_); }
  // It wants to leave. False: nothing of it waits for a round, so that its session may end at once.
  bool waits_for_round(MemberState& member, const Leave& leave);
  void on_over(const Session& session, const PeerId& peer, bool fenced);
  // allreduce: why this peer is not admitted now.
  std::optional<std::string> keeps_out(const PeerId& peer) const {
    return diloco_active() ? std::nullopt : blames_.keeps_out(peer);
  }
  // Another serving member holds the newest version, or there is none yet.
  bool held_without(const Session& session) const { return !line_.secured || line_.held(members(), session); }

  void want_last();   // Authority::finish
  void tend_last() {  // after the first last round: whether a member is still waited for
    if (!round_) last_.tend(members(), blames_, loop_.now());
  }
  bool finished();  // nothing is left to decide
  void give_up();   // no round any more; the open one is abandoned

 private:
  const MembersOfStage& members() const { return book_.of(line_.stage); }
  bool diloco_active() const;
  // ---- opening ----
  StageView view() {
    return {line_, members(), blames_, detector_, times_.payload(), !book_.relays().empty(), looked_at_};
  }
  bool diloco_due();
  bool enough_for_parts(std::size_t members);  // says so when not; then nobody waits for the last round
  void open_round(const Step* step, std::vector<Session> members);
  void send_open();
  // ---- deciding ----
  void on_failed(const Remote& from, const RoundReport& report);
  // It answered the opening with `failed`, and brought nothing.
  void on_refused(MemberState& member, const RoundReport& report);
  void on_malformed(const Session& by, const Session& sender, const std::string& reason);
  void check_stall();
  void on_budget();
  void try_decide(bool grace_over);
  void commit(const Digest& digest);
  void abandon(const std::string& reason);
  OpenRound take_round();  // the stage has none any more
  void release_leavers(const std::vector<Session>& among);

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
  StageTimes times_;
  StageRestore restore_;
  LastRounds last_;
  std::optional<OpenRound> round_;
  TimePoint last_commit_at_{};
  TimePoint retry_at_{};
  Backoff retry_pause_{100ms, 5s};  // between attempts that come to nothing
  bool too_few_said_ = false;       // too few members for the parts of a round
  bool gave_up_ = false;
  std::uint64_t looked_at_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
