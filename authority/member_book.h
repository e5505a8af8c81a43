#pragma once
// The members of the run and whether they live, the sessions that are over, the joiners that wait for a stage, the
// links that are up; and the member list that follows from them: made, told to all, given to a member that asks.
//
// Thread: loop only.   Borrows: options, port, loop.   Bounds: limits::kStagesMax x kReplicasMax members, 16 bytes a
// session that is over, kOverAgain of them with their reasons, kWishesMax wishes, one ListHistory.
//
// clang-format off
// Life: a member is fenced when one of these is over. No such time passes while this process slept or waits for its log.
//   silence       `membership`, or twice the longest gap between two of its beats lately
//   a hung device job_patience() of its device's present job (authority/patience.h)
// Lists: a member gets the whole list once, then what changed of it (authority/list_change.h), at most every
//   kListPauseMin to kListPauseMax; a BeatAck names the newest epoch, and a member that lacks one asks (MembersQuery).
// clang-format on
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "authority/authority_log.h"
#include "authority/authority_port.h"
#include "authority/list_history.h"
#include "authority/member_state.h"
#include "authority/round_tally.h"
#include "common/event_loop.h"
#include "transport/links.h"

namespace shoal {

class MemberBook {
 public:
  // For a joiner that asks for a stage while another one has no member: others may be on their way there, and then
  // everybody gets what it asked for. Two repeats of a JoinRequest fit in.
  static constexpr Duration kWishPatience = 5s;
  static constexpr std::size_t kWishesMax = 256;  // that wait at a time; more are passed over at once
  static constexpr std::size_t kOverAgain = 1024;
  static constexpr Duration kSlept = 1s;  // between two ticks: we slept, and nobody was silent meanwhile

  // `on_failure`: a list cannot be made any more.
  MemberBook(const AuthorityOptions& options, AuthorityPort& port, EventLoop& loop,
             std::function<void(const Error&)> on_failure);
  ~MemberBook();
  MemberBook(const MemberBook&) = delete;
  MemberBook& operator=(const MemberBook&) = delete;

  // ---- members ----
  const std::map<Session, MemberState>& members() const { return members_; }
  // The part of members() that serves the stage, in the same order: what looks at a stage looks at no other one's
  // members, since every beat does. The reference stays good.
  const MembersOfStage& of(StageId stage) const { return stages_[stage.value]; }
  MemberState* find(const Session& session);                  // null: no member
  MemberState& place(const Session& session, StageId stage);  // makes it where there is none
  // Its session is over. REQUIRES: it is a member.
  void end(const Session& session, const std::string& reason, bool left);
  bool knows(const Session& session) const { return members_.contains(session) || over_.contains(session); }
  bool is_over(const Session& session) const { return over_.contains(session); }
  // To a session that is no member: Goodbye if it left, else Fenced.
  void tell_over(const Remote& to) const;
  void fence_again() const;  // after a restart, the sessions that did not leave
  // A joiner's wish cannot be granted yet. True: its request goes unanswered, and it repeats it.
  bool wish_waits(const Session& session);
  void send_to(const Session& session, Message message) const;  // nothing when it is no member

  // ---- life ----
  void on_link_up(const Remote& from);
  void on_link_down(const Remote& from);
  std::set<PeerId> reachable() const;                         // members, and all whose link is up
  void on_beat(MemberState& member, const Beat& beat) const;  // what it says of itself and not of its stage
  Duration ticked();                                          // since when it was called before
  void all_heard();                                           // now
  void forgive(Duration silence);                             // of every member: it was ours
  bool beats(const MemberState& member) const;
  // What is believed of a job's length that it claims: what it was seen to need, or what the stage's other members
  // claim (their lower median), or the least patience. Its word alone is worth no more.
  Duration believed(const MemberState& member, Duration claimed) const;
  // It would not hear of a round that opens now: its link is down, or it is silent.
  bool away(const MemberState& member) const;
  // It began to serve, so long after it could.
  void note_start(Duration took) {
    longest_start_ = std::max(longest_start_, took);
    usual_start_ = usual_start_ > Duration(0) ? usual_start_ + (took - usual_start_) / 4 : took;
  }
  // From a member's last microbatch at one stage to its first one at another, by what members of this run needed lately
  // to begin; kStartUnknown while none is known.
  Duration move_time() const { return usual_start_ > Duration(0) ? kLeaves + usual_start_ : kStartUnknown; }
  static constexpr Duration kLeaves = 5s, kStartUnknown = 30s;
  // What a member may need for that: four times what any of the run needed, or a first job's time while none began.
  Duration start_patience() const;
  // Whether it serves, or may well be on its way there: it is not longer about it than start_patience().
  bool makes_progress(const MemberState& member) const;
  std::map<Session, std::string> dead() const;  // the members to be fenced, and why
  std::vector<MemberLife> lives() const;        // in the order of their sessions

  // ---- the list ----
  void change_list() { ++epoch_.value; }         // a member was added or changed
  bool list_is_stale() const { return stale_; }  // versions changed since the newest decided one
  // `heads`: the stages without their members.
  MemberList list_of(std::vector<StageMembers> heads) const;
  // The signed list with one more member, and without `older`.
  bool fits(MemberList list, const Whereabouts& whereabouts, const std::optional<Session>& older) const;
  // REQUIRES: in the order of the decisions. The trainer routes by it at once, members hear of it in a while.
  void publish(MemberList list);
  const MemberList& published() const { return published_; }
  Epoch told() const { return lists_.newest().epoch; }  // the newest that was told to all
  // To a member that has the one of this epoch and id.
  void send_list(MemberState& member, Epoch epoch, std::uint64_t id);
  // To an observer, which is none of them: the whole list, unless it has it. At most each kShownEvery, to all of them.
  void show_list(const PeerId& reader, Epoch epoch, std::uint64_t id);
  static constexpr Duration kShownEvery = 20ms;
  void close();  // no list is told any more

  // ---- what rounds secured ----
  void note_commit(const RoundCommit& commit, const RecentCommits::TakenBack& taken);
  const RoundTally& tally() const { return tally_; }

  // ---- the log ----
  void replay(const LogBase& record);
  void replay(const LogShares& record);
  void replay(const LogSessions& record);
  void replay(const LogNamed& record) { note_named(record.commit); }
  void note_over(const LogOverAgain& record);
  void compact(std::vector<LogRecord>& records) const;  // what stands in front of the stages
  const std::deque<LogOverAgain>& over_lately() const { return over_lately_; }

 private:
  void note_named(const RoundCommit& commit);
  Duration silence_patience(const MemberState& member) const;
  Duration patience_with_job(const MemberState& member) const;
  std::string dead_because(const MemberState& member, TimePoint now) const;  // empty: it lives
  void tell_list();
  void name_newer_list(MemberState& member, Epoch epoch);

  const AuthorityOptions& options_;
  AuthorityPort& port_;
  EventLoop& loop_;
  const std::function<void(const Error&)> on_failure_;

  std::map<Session, MemberState> members_;
  std::vector<MembersOfStage> stages_;
  std::map<Session, bool> over_;  // true: it left, false: fenced
  TimePoint next_shown_{};
  std::deque<LogOverAgain> over_lately_;  // the newest kOverAgain of them
  std::map<Session, TimePoint> wishes_;   // joiners that wait for the stage that they asked for, since when
  std::map<PeerId, Session> linked_;      // peers whose link is up
  RoundTally tally_;
  TimePoint last_tick_{};
  Duration longest_start_{0}, usual_start_{0};

  Epoch epoch_;  // of the list; counts the decisions that change it
  MemberList published_;
  bool stale_ = false, closed_ = false;
  ListHistory lists_;      // those that were told
  TimePoint next_list_{};  // is told not before
  TimerId list_timer_ = 0;
};

}  // namespace shoal
