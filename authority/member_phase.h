#pragma once
// Where a member is on its way to taking part in rounds. It is in one phase at a time, and MemberState::enter is the
// only way from one to another. Pure. Thread: any.
//
// clang-format off
//   phase       serves            it is
//   kNew        –                 a row of the list, before its admission or its log record says more
//   kIdle       nothing           not to be counted on: it may begin to serve, or have stopped
//   kFetching   nothing           one that joined a secured stage and has to fetch its state
//   kOvertaken  an older version  the same, and rounds overtook what it fetched
//   kReady      the newest one    a holder of an anchor that takes part in rounds, until it stops serving: it stays so
//                                 while it serves an older version than the newest, since it may catch up by itself
//   kOutdated   an older version  no joiner, and has not served the newest one since it was idle or ahead
//   kAhead      a newer version   a holder of what the log does not know
// clang-format on
#include <cstdint>

#include "common/ids.h"

namespace shoal {

enum class MemberPhase : std::uint8_t { kNew, kIdle, kFetching, kOvertaken, kReady, kOutdated, kAhead };
inline constexpr int kMemberPhases = 7;

// Whether a member may go from one to the other; each phase may follow itself. A session that this authority admitted
// is over when it says that it is ahead, so no phase of a joiner leads there.
bool may_follow(MemberPhase from, MemberPhase to);
// Where a beat leads that says whether it serves, and which version; `newest`: of its stage.
MemberPhase phase_after_beat(MemberPhase now, bool serving, Version version, Version newest);

}  // namespace shoal
