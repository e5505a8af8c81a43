#pragma once
// What the rules share.
#include "common/result.h"
#include "stages/arena.h"
#include "sync/outer_rule.h"

namespace shoal {

inline std::span<const float> read_role(Arena& arena, ArenaRole role) {
  arena.pull(role);
  return arena.span(role);
}

// ERRORS: kNonFinite, naming `what` and the first element.
Status check_all_finite(std::span<const float> values, std::string_view what);
// For rules that take all parameters at once. ERRORS: kUnsupported.
Status check_no_fragment(const RoundContext& context);

}  // namespace shoal
