#include "router/reverse_links.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/log.h"

namespace shoal {
namespace {

// Those of the stage that can be dialled, at most so many; every process has an order of its own.
void add_direct_ones(const StageMembers& stage, const Member& self, std::vector<PeerId>& to) {
  std::vector<std::pair<std::uint64_t, PeerId>> direct;
  for (const Member& member : stage.members)
    if (member.whereabouts.reach == Reach::kDirect && member.session != self.session)
      direct.emplace_back(mix64(std::hash<PeerId>{}(self.peer), std::hash<PeerId>{}(member.peer)), member.peer);
  std::sort(direct.begin(), direct.end());
  if (direct.size() > ReverseLinks::kStageMax) direct.resize(ReverseLinks::kStageMax);
  for (const auto& [order, peer] : direct) to.push_back(peer);
}

}  // namespace

void ReverseLinks::on_members(const MemberList& list) {
  kept_.clear();
  dialable_ = callable_ = false;
  const Member* self = nullptr;
  StageId at;
  for (const StageMembers& stage : list.stages)
    for (const Member& member : stage.members)
      if (member.session == self_) self = &member, at = stage.stage;
  if (self == nullptr) return;
  dialable_ = self->whereabouts.dialable();
  callable_ = !self->whereabouts.homes.empty();
  if (self->whereabouts.reach == Reach::kDirect) return;
  for (const StageMembers& stage : list.stages)
    if (stage.stage.value + 1 >= at.value && stage.stage.value <= at.value + 1) add_direct_ones(stage, *self, kept_);
}

void ReverseLinks::tick(TimePoint now) {
  now_ = now;
  if (now < next_look_) return;
  next_look_ = now + kLookPeriod;
  for (const PeerId& peer : kept_) links_.dial(peer);
  std::erase_if(knocks_at_, [&](const auto& one) { return now - one.second.last >= kKnockPause + 2 * kLookPeriod; });
}

void ReverseLinks::knock(const Session& session) {
  if (!authority_ || !(dialable_ || callable_)) return;
  const auto at = knocks_at_.find(session);
  if ((at != knocks_at_.end() && now_ - at->second.last < kKnockPause) || !knocks_.take(now_)) return;
  knocks_at_.try_emplace(session, Knocking{now_, now_}).first->second.last = now_;
  if (const auto sent = links_.send(*authority_, Knock{session}); !sent.ok())
    log_debug("no knock at ", short_name(session), ": ", sent.error().message);
}

bool ReverseLinks::by_relay(const Session& session) const {
  if (only_dials()) return true;
  const auto at = knocks_at_.find(session);
  return at != knocks_at_.end() && now_ - at->second.since >= kRelayAfter;
}

}  // namespace shoal
