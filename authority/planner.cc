#include "authority/planner.h"

#include <algorithm>
#include <tuple>

namespace shoal {
namespace {

bool holds_last_state(const StageSupply& supply, const JoinWish& wish) {
  return supply.secured && wish.held_stage == supply.stage && wish.held_version <= supply.version &&
         wish.held_digest == supply.digest;
}

// A joiner may choose freely when every stage but the chosen one has a member already.
bool others_have_members(std::span<const StageSupply> stages, StageId chosen) {
  return std::all_of(stages.begin(), stages.end(),
                     [&](const StageSupply& supply) { return supply.stage == chosen || supply.members > 0; });
}

}  // namespace

JoinWish wish_of(const JoinRequest& request, const RecentCommits* recent) {
  JoinWish wish;
  wish.stage = request.wish;
  wish.direct = request.whereabouts.reach == Reach::kDirect;
  if (!request.held_stage || request.held.empty()) return wish;
  wish.held_stage = request.held_stage;
  auto chosen = request.held.begin();
  if (recent != nullptr) {
    const auto known = std::ranges::find_if(request.held, [&](const HeldState& held) { return recent->known(held); });
    wish.held_known = known != request.held.end();
    if (wish.held_known) chosen = known;
  }
  wish.held_version = chosen->version;
  wish.held_digest = chosen->digest;
  return wish;
}

Result<StageChoice> choose_stage(std::span<const StageSupply> stages, const JoinWish& wish) {
  if (stages.empty()) return make_error(ErrorCode::kInput, "the run has no stages");
  const auto find = [&](StageId stage) {
    return std::find_if(stages.begin(), stages.end(), [&](const StageSupply& supply) { return supply.stage == stage; });
  };
  if (wish.stage && find(*wish.stage) == stages.end())
    return make_error(ErrorCode::kInput, "stage " + std::to_string(wish.stage->value) + " was asked for; the run has " +
                                             std::to_string(stages.size()) + " stages, numbered from 0");
  const auto held = std::find_if(stages.begin(), stages.end(),
                                 [&](const StageSupply& supply) { return holds_last_state(supply, wish); });
  if (held != stages.end() && held->serving == 0)
    return StageChoice{held->stage, "it holds the last committed state, and nobody serves the stage"};
  if (wish.held_known && wish.held_stage)
    if (const auto older = find(*wish.held_stage); older != stages.end() && older->serving == 0)
      return StageChoice{older->stage, "it holds version " + std::to_string(wish.held_version.value) +
                                           " of the stage, and nobody serves it"};
  if (wish.stage && (find(*wish.stage)->members == 0 || others_have_members(stages, *wish.stage)))
    return StageChoice{*wish.stage, wish.of_layout ? "as the layout has it" : "as asked for"};
  if (held != stages.end() && others_have_members(stages, held->stage))
    return StageChoice{held->stage, "it holds the last committed state"};
  const auto rank = [&](const StageSupply& supply) {
    const bool meets_nobody = !wish.direct && supply.members > 0 && !supply.direct;
    return std::tuple(meets_nobody, std::min(supply.members, kMembersFirst), wish.direct && supply.direct, supply.rate,
                      supply.members, supply.stage);
  };
  const auto weakest = std::min_element(stages.begin(), stages.end(),
                                        [&](const StageSupply& a, const StageSupply& b) { return rank(a) < rank(b); });
  return StageChoice{.stage = weakest->stage,
                     .reason = "weakest stage (" + std::to_string(weakest->members) + " members)",
                     .wish_may_come = wish.stage.has_value() && !weakest->secured};
}

}  // namespace shoal
