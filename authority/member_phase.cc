#include "authority/member_phase.h"

#include <array>

namespace shoal {
namespace {

// clang-format off
constexpr std::array<std::array<bool, kMemberPhases>, kMemberPhases> kMayFollow{{
    // to: listed  idle   fetching overtaken ready  outdated ahead
    {{true,  true,  true,  false, true,  false, false}},  // from kNew
    {{false, true,  false, false, true,  true,  true}},   // from kIdle
    {{false, false, true,  true,  true,  false, false}},  // from kFetching
    {{false, false, true,  true,  true,  false, false}},  // from kOvertaken
    {{false, true,  false, false, true,  false, true}},   // from kReady
    {{false, true,  false, false, true,  true,  true}},   // from kOutdated
    {{false, true,  false, false, true,  true,  true}},   // from kAhead
}};
// clang-format on

}  // namespace

bool may_follow(MemberPhase from, MemberPhase to) {
  return kMayFollow[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

MemberPhase phase_after_beat(MemberPhase now, bool serving, Version version, Version newest) {
  const bool joiner = now == MemberPhase::kFetching || now == MemberPhase::kOvertaken;
  if (!serving) return joiner ? MemberPhase::kFetching : MemberPhase::kIdle;
  if (version > newest) return MemberPhase::kAhead;
  if (version == newest || now == MemberPhase::kReady) return MemberPhase::kReady;
  return joiner ? MemberPhase::kOvertaken : MemberPhase::kOutdated;
}

}  // namespace shoal
