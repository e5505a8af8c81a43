#pragma once
// Whether a round of a stage is due, which members take part, and which may leave behind it: functions of what the
// authority knows of the stage. Thread: loop only.
#include <cstdint>
#include <vector>

#include "authority/failure_detector.h"
#include "authority/round_blames.h"
#include "authority/stage_line.h"
#include "sync/round_owners.h"

namespace shoal {

struct StageView {
  const StageLine& line;
  const MembersOfStage& members;
  const RoundBlames& blames;
  const FailureDetector& detector;
  std::uint64_t payload = 0;  // bytes of what a member brings; 0: not known
  bool relays = false;        // by which members meet that nobody can dial
  std::uint64_t& looked_at;   // members that were looked at
};

// The members that take part: more than half of those who are ready and not behind, or nobody yet. Steps need everybody
// who may hold entries of them, also a member that still writes the commit of the step before; deltas need the same
// anchor, and go on without those that are away: in a large stage somebody always is, and each would hold the others
// until its membership time is over. In the order of the sessions, which all members share.
std::vector<Session> who_takes_part(const StageView& view, bool step_round);
// Which of them own the round's parts. Where too few meet all, all of them do: that attempt shows who is to be left
// out.
RoundOwners who_owns(const StageView& view, const std::vector<Session>& members);
// Somebody asked to leave and could take part in a round at once.
bool leaver_waits(const StageView& view);
// What the members that could take part have settled comes to `round_targets` for each of them, or to anything where
// the time cap is over.
bool targets_due(const StageView& view, std::uint64_t round_targets, bool cap_over);
bool somebody_fetches(const StageView& view);
// Members that asked to leave may go when a round that they were part of (`among`) is committed. If the anchor would go
// with them, one asks again.
std::vector<Session> who_may_leave(const StageView& view, const std::vector<Session>& among);

// The last rounds of a stage, when the run ends: another one is due as long as a member may hold what none has. Value.
class LastRounds {
 public:
  void want() { wanted_ = true; }
  void drop() { wanted_ = false; }
  bool wanted() const { return wanted_; }
  bool due(const StageLine& line, const MembersOfStage& members, const RoundBlames& blames) const;
  // After the first one: whether a member is still waited for. One that was behind catches up, in about the time of a
  // round's bytes; one that rests is tried again.
  void tend(const MembersOfStage& members, RoundBlames& blames, TimePoint now);
  // One was committed. After `until` nobody is waited for.
  void on_commit(TimePoint until);
  void on_abandon();
  void on_any_commit() { failures_ = 0; }

 private:
  bool wanted_ = false;  // and somebody may hold what no last round has
  bool made_ = false;    // one was committed
  TimePoint until_{};
  std::size_t failures_ = 0;
};

}  // namespace shoal
