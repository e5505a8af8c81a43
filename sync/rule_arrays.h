#pragma once
// Loops over arena roles that the rules share. Thread: device thread only.
#include <algorithm>

#include "common/result.h"
#include "stages/arena.h"
#include "sync/outer_rule.h"

namespace shoal {

inline std::span<const float> read_role(Arena& arena, ArenaRole role) {
  arena.pull(role);
  return arena.span(role);
}

inline void copy_role(Arena& arena, ArenaRole from, ArenaRole to) {
  const std::span<const float> source = read_role(arena, from);
  const std::span<float> target = arena.span(to);
  std::copy(source.begin(), source.end(), target.begin());
  arena.tag(to) = arena.tag(from);
  arena.push(to);
}

// ERRORS: kNonFinite, naming `what` and the first element.
Status check_all_finite(std::span<const float> values, std::string_view what);
// For rules that take all parameters at once. ERRORS: kUnsupported.
Status check_no_fragment(const RoundContext& context);

}  // namespace shoal
