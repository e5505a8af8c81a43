#pragma once
// Which stage a joiner should serve. Pure functions of a snapshot of the swarm: no I/O, no clock, no state.
// Used by the authority for JoinRequests. Thread: any.
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "authority/recent_commits.h"
#include "common/ids.h"
#include "common/result.h"
#include "transport/messages.h"

namespace shoal {

struct StageSupply {
  StageId stage;
  std::size_t members = 0;  // that serve, or are on the way there and not longer than others were
  std::size_t serving = 0;
  bool direct = false;   // one of the members can be dialled
  double rate = 0;       // microbatches a second that its members can compute (authority/move_plan.h)
  bool secured = false;  // a round of it was committed: its state is version/digest and nothing else
  Version version;
  Digest digest;
};

struct JoinWish {
  std::optional<StageId> stage;  // what its owner asked for, or else the layout
  bool of_layout = false;
  bool direct = true;  // others can dial the joiner
  // Anchor that the joiner still holds from an earlier session.
  std::optional<StageId> held_stage;
  Version held_version;
  Digest held_digest;
  bool held_known = false;  // the stage could go back to it (authority/recent_commits.h)
};

// `recent`: of the stage that the joiner holds states of; null: there is none. What it holds is then the newest that
// the stage could go back to, else what it names first.
JoinWish wish_of(const JoinRequest& request, const RecentCommits* recent);

struct StageChoice {
  StageId stage;
  std::string reason;  // for people: "weakest stage (2 members)"
  // The wish was passed over for a stage that has no member and never secured a round, so that nobody misses it yet:
  // the wish can be granted once others are there.
  bool wish_may_come = false;
};

inline constexpr std::size_t kMembersFirst = 2;  // with so many a stage survives the death of one

// In this order:
//   1. a secured stage that nobody serves and whose last committed state the joiner holds, or else an earlier one that
//      the stage could go back to: only it can bring it back;
//   2. the wish, if no other stage stays without members, or its stage has none either;
//   3. the stage whose last committed state it holds, under the same condition (it need not fetch);
//   4. the one that it helps most: for a joiner that nobody can dial one without members or where it meets somebody,
//   who
//      can be dialled; the fewest members up to kMembersFirst; for one that can be dialled a stage without such a
//      member; then the lowest rate, then the fewest members, then the lowest stage.
// Never leaves a stage empty that it could fill. ERRORS: kInput (a wish beyond the run's stages; no stages).
Result<StageChoice> choose_stage(std::span<const StageSupply> stages, const JoinWish& wish);

}  // namespace shoal
