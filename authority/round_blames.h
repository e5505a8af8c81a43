#pragma once
// Which members of a stage its rounds go without: what failed attempts say against them. A member that brought nothing
// in attempt after attempt, or was named silent and does not beat, is passed over until a round is committed; two that
// beat and cannot exchange bytes own nothing for a time, or one is left out (authority/unreachable_pairs.h,
// docs/ROUNDS.md "Two members that cannot reach each other"). Under allreduce it misses steps then, so its session
// ends.
//
// State machine without I/O. Thread: loop only.   Borrows: all that it is made with.   Bounds: those of
// UnreachablePairs.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "authority/failure_detector.h"
#include "authority/member_book.h"
#include "authority/open_round.h"
#include "authority/unreachable_pairs.h"
#include "common/event_loop.h"

namespace shoal {

class MemberDecisions;

class RoundBlames {
 public:
  // Attempts in a row that named a member silent; then the next one goes without it if enough are left.
  static constexpr std::uint32_t kSilentMax = 2;

  RoundBlames(StageId stage, AuthorityPort& port, const EventLoop& loop, MemberBook& book,
              const FailureDetector& detector, MemberDecisions& decisions)
      : stage_(stage), port_(port), loop_(loop), book_(book), detector_(detector), decisions_(decisions) {}
  // `by` says that nothing of `silent` came. A member that brought nothing, or does not beat, is slow or away; else the
  // path between the two is to blame.
  void note_silent(OpenRound& round, const Session& by, const Session& silent) const;
  // The attempt came to nothing: its blames into the books. The next one needs `owners`, at least.
  void on_abandon(const OpenRound& round, std::size_t owners);
  void on_commit(const OpenRound& round, const Digest& digest);
  // Members whose agreement contradicts what was contributed; at the second time the session ends. REQUIRES: the round
  // is over. `may_leave_out`: the next attempt may go without them.
  void name_contradicting(const OpenRound& round, bool may_leave_out);
  void end_left_out();  // allreduce: their steps go on without them
  void on_over(const PeerId& peer, bool fenced) { fenced ? pairs_.on_gone(peer) : pairs_.on_left(peer); }
  // The last rounds: a member that rests is tried once more, since what it holds would be lost; where a last round has
  // all of the other one of its pair (MemberState.flushed), without that one. With a third member at least: of two each
  // would decide alone.
  void try_now();

  // Members that rest and need not any more, since enough others meet all: they own nothing instead.
  void bring_back(std::size_t owners);
  // Pairs of these members that do not meet, by their places.
  std::vector<std::pair<std::size_t, std::size_t>> apart(const std::vector<Session>& members) const;

  // The next attempts go without it until a round is committed, if enough are left.
  static void leave_out(MemberState& member) { member.blame.silent_count = kSilentMax; }
  bool rests(const MemberState& member) const { return pairs_.rests(member.member.peer, loop_.now()); }
  bool reliable(const MemberState& member) const { return member.blame.silent_count < kSilentMax; }
  bool doubted(const MemberState& member) const { return pairs_.doubted(member.member.peer); }
  std::string doubted_because(const MemberState& member) const;  // empty: it is not
  // Why a joiner has to wait for its trial, where rounds do not go on without it.
  std::optional<std::string> keeps_out(const PeerId& peer) const;

 private:
  void count_silent(const OpenRound& round);
  std::string ends_because(const MemberState& member) const;  // REQUIRES: rests(member)
  void say(const UnreachablePairs::Settled& settled) const;
  MemberState* member_of(const PeerId& peer) const;  // null: none

  const StageId stage_;
  AuthorityPort& port_;
  const EventLoop& loop_;
  MemberBook& book_;
  const FailureDetector& detector_;
  MemberDecisions& decisions_;
  UnreachablePairs pairs_;
};

}  // namespace shoal
