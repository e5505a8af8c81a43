#include "sync/outer_rule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "common/bulk_bytes.h"
#include "common/check.h"
#include "common/crypto/hash.h"
#include "sync/rule_arrays.h"

namespace shoal {
namespace {

Digest digest_of(Arena& arena, const OuterRule& rule, ArenaRole anchor, const std::vector<ArenaRole>& roles) {
  Hasher hasher;
  hasher.update_u64(static_cast<std::uint64_t>(rule.id()));
  hasher.update_u64(arena.tag(anchor));
  hasher.update_u64(arena.size());
  hasher.update(bytes_of(read_role(arena, anchor)));
  for (const ArenaRole role : roles) hasher.update(bytes_of(read_role(arena, role)));
  return hasher.finish();
}

}  // namespace

Digest state_digest(StageExecutor& executor, const OuterRule& rule) {
  return digest_of(executor.arena(), rule, ArenaRole::kAnchor, rule.shared_roles());
}

Digest candidate_digest(StageExecutor& executor, const OuterRule& rule) {
  return digest_of(executor.arena(), rule, ArenaRole::kCandidate, rule.candidate_roles());
}

void adopt_candidate(StageExecutor& executor, const OuterRule& rule) {
  Arena& arena = executor.arena();
  const std::vector<ArenaRole> shared = rule.shared_roles(), candidates = rule.candidate_roles();
  SHOAL_CHECK_EQ(shared.size(), candidates.size());
  arena.copy(ArenaRole::kCandidate, ArenaRole::kAnchor);
  for (std::size_t i = 0; i < shared.size(); ++i) arena.copy(candidates[i], shared[i]);
}

Status check_no_fragment(const RoundContext& context) {
  if (context.fragment == 0) return Status::success();
  return make_error(ErrorCode::kUnsupported,
                    "fragment " + std::to_string(context.fragment) + ": this rule takes all parameters at once");
}

Status check_all_finite(std::span<const float> values, std::string_view what) {
  // The largest magnitude, as an integer, so that the compiler may take several at once.
  note_bulk(values.size_bytes());
  std::uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  constexpr auto kInfinity = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
  if (largest < kInfinity) return Status::success();
  const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  return make_error(ErrorCode::kNonFinite,
                    std::string(what) + " is not finite at element " + std::to_string(bad - values.begin()));
}

std::shared_ptr<OuterRule> OuterRules::of(RuleId id) const {
  switch (id) {
    case RuleId::kAllreduce:
      return allreduce;
    case RuleId::kDiloco:
      return diloco;
  }
  return nullptr;
}

}  // namespace shoal
