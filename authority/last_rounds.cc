#include "authority/last_rounds.h"

#include <algorithm>

namespace shoal {
namespace {

constexpr std::size_t kFailuresMax = 8;

// It may hold what no last round has.
bool awaited(const MemberState& member) { return member.serves() && !member.flushed && !member.ahead(); }

}  // namespace

bool LastRounds::due(const StageLine& line, const MembersOfStage& members, const RoundBlames& blames) const {
  if (!wanted_ || !made_) return wanted_;
  return std::ranges::any_of(members, [&](const auto& entry) {
    const MemberState& member = *entry.second;
    return awaited(member) && line.has_newest(member) && !blames.rests(member);
  });
}

void LastRounds::tend(const MembersOfStage& members, RoundBlames& blames, TimePoint now) {
  if (!wanted_ || !made_) return;
  bool anyone = false, one_rests = false;
  for (const auto& [session, member] : members) {
    if (!awaited(*member)) continue;
    anyone = true;
    one_rests = one_rests || blames.rests(*member);
  }
  wanted_ = anyone && now < until_;
  if (wanted_ && one_rests) blames.try_now();
}

void LastRounds::on_commit(TimePoint until) {
  made_ = true;
  until_ = until;
}

void LastRounds::on_abandon() {
  if (++failures_ >= kFailuresMax) wanted_ = false;
}

}  // namespace shoal
