#pragma once
// The flat float arrays of one stage, by role. All have the same length, parameter_count(spec), but kRuleState
// and kBase.
//
// Beside every array travels a CountTag: the sum modulo 2^64 of count_tag(microbatch) over the gradients that went into
// it. It is added, subtracted, reduced and reset by the code that does the same to the floats, so tags prove what was
// counted where (docs/DECISIONS.md).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/ids.h"

namespace shoal {

enum class ArenaRole : std::uint8_t {
  kCurrent,  // parameters at the newest stamp
  kOther,    // the other parameter buffer: the stamp before, until the next write
  kAnchor,   // outer parameters all replicas agree on
  kMoment1,  // AdamW m
  kMoment2,  // AdamW v; of matrices that Muon steps, its last update
  kOuterMomentum,
  kAccumulatorA,  // gradient sums of the two windows: sum over targets of d(loss)/d(parameter), not divided
  kAccumulatorB,
  kSnapshot,   // parameters a round started from
  kShift,      // what the next write adds to the parameters: how far rounds have moved the anchor
  kCandidate,  // result of a round before its commit
  kCandidateMoment1,
  kCandidateMoment2,
  kCandidateOuter,
  kCandidateShift,  // what a round's commit will add to the parameters
  kBase,            // what adapters stand beside, parameters of base_of(spec): given once, never written by training
  kRuleState,       // whatever an outer rule keeps (error feedback, ...)
  kCount_,
};

// What rounds work with and passes do not: in host memory whatever the device is.
constexpr bool is_outer(ArenaRole role) {
  return role == ArenaRole::kAnchor || role == ArenaRole::kOuterMomentum ||
         (role >= ArenaRole::kSnapshot && role <= ArenaRole::kCandidateShift);
}

// Thread: device thread only, but span() and tag(), of roles that nobody writes meanwhile or that are the caller's
// alone (sync/outer_rule.h). Arrays are allocated (zeroed) at first use.
class Arena {
 public:
  virtual ~Arena() = default;
  virtual std::size_t size() const = 0;  // floats of one array
  // Host memory, 64-byte aligned: pull() before reading, push() after writing. On a device arena it is a mirror, which
  // they copy. On the host there is nothing to copy, but push() also says that what was made of the role is old.
  virtual std::span<float> span(ArenaRole role) = 0;
  virtual void pull(ArenaRole role) = 0;
  virtual void push(ArenaRole role) = 0;
  virtual CountTag& tag(ArenaRole role) = 0;
  virtual void release(ArenaRole role) = 0;  // frees a role that is not needed for now
  // With its tag; where they are, so that nothing is to be pulled or pushed.
  virtual void copy(ArenaRole from, ArenaRole to) = 0;
  // `to` takes the array and the tag, and what it had is freed. Nothing is copied. REQUIRES: both are outer.
  virtual void move(ArenaRole from, ArenaRole to) = 0;
};

// Element by element, and of the tags. REQUIRES of both: outer roles.
inline void add_role(Arena& arena, ArenaRole from, ArenaRole to) {
  std::ranges::transform(arena.span(to), arena.span(from), arena.span(to).begin(), std::plus<>());
  arena.tag(to) += arena.tag(from);
}
// to := from - less.
inline void subtract_roles(Arena& arena, ArenaRole from, ArenaRole less, ArenaRole to) {
  std::ranges::transform(arena.span(from), arena.span(less), arena.span(to).begin(), std::minus<>());
  arena.tag(to) = arena.tag(from) - arena.tag(less);
}

}  // namespace shoal
