#pragma once
// The rules by which the replicas of a stage agree (sync/outer_rule.h): their names, and what the rest of the program
// asks about one. No place but the rules themselves compares a RuleId, so a new rule is a row here. Values.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace shoal {

enum class RuleId : std::uint8_t { kAllreduce = 0, kDiloco = 1 };
inline constexpr std::string_view kRuleNames[] = {"allreduce", "diloco"};  // by id; as in RUN.toml

struct RuleTraits {
  bool every_step = false;          // a round is a global step and its replicas never differ; else each makes its own
  std::uint64_t shared_arrays = 0;  // that a joiner fetches beside the anchor
  double demo_loss_ratio = 0;       // of a long `shoal demo`: validation loss over that of one process, at most
};
inline constexpr RuleTraits kRuleTraits[] = {{true, 2, 1.01}, {false, 1, 1.05}};  // by id
static_assert(std::size(kRuleNames) == std::size(kRuleTraits));

inline constexpr RuleId kWarmRule = RuleId::kAllreduce;  // of the warm steps of a run by another rule

// REQUIRES: the rule has a row.
constexpr const RuleTraits& traits_of(RuleId rule) { return kRuleTraits[static_cast<std::size_t>(rule)]; }
constexpr std::string_view name_of(RuleId rule) { return kRuleNames[static_cast<std::size_t>(rule)]; }
constexpr std::optional<RuleId> rule_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kRuleNames); ++i)
    if (kRuleNames[i] == name) return static_cast<RuleId>(i);
  return std::nullopt;
}

}  // namespace shoal
