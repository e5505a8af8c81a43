#pragma once
// The last rounds of a stage, when the run ends: another one is due as long as a member may hold what none has.
// Value. Thread: loop only.
#include <cstdint>

#include "authority/round_blames.h"
#include "authority/stage_line.h"

namespace shoal {

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
