#include "authority/round_opening.h"

#include <algorithm>

#include "authority/owner_choice.h"
#include "sync/round_budget.h"

namespace shoal {
namespace {

constexpr std::size_t kFailuresMax = 8;

// It may hold what no last round has.
bool awaited(const MemberState& member) { return member.serves() && !member.flushed && !member.ahead(); }

}  // namespace

std::vector<Session> who_takes_part(const StageView& view, bool step_round) {
  std::vector<Session> ready, able, reliable;
  for (const auto& [session, member] : view.members) {
    ++view.looked_at;
    if (!member->ready() || view.blames.rests(*member)) continue;
    if (!step_round && member->fetch.since) continue;
    ready.push_back(session);
    if (!step_round && member->version != view.line.version()) continue;
    able.push_back(session);
    if (view.blames.reliable(*member) && (step_round || !view.detector.away(*member))) reliable.push_back(session);
  }
  if (2 * reliable.size() > ready.size() && parts_fit(view.payload, reliable.size(), reliable.size())) return reliable;
  if (2 * able.size() > ready.size()) return able;
  return {};
}

RoundOwners who_owns(const StageView& view, const std::vector<Session>& members) {
  std::vector<bool> direct;
  for (const Session& session : members)
    direct.push_back(view.members.at(session)->member.whereabouts.reach == Reach::kDirect);
  std::vector<std::pair<std::size_t, std::size_t>> apart = view.blames.apart(members);
  for (std::size_t one = 0; one < direct.size() && !view.relays; ++one)  // neither can dial the other
    for (std::size_t other = one + 1; other < direct.size(); ++other)
      if (!direct[one] && !direct[other]) apart.emplace_back(one, other);
  const RoundOwners owners = choose_owners(direct, apart, owners_needed(view.payload));
  return owners.empty() ? all_own(members.size()) : owners;
}

bool leaver_waits(const StageView& view) {
  return std::ranges::any_of(view.members, [&](const auto& entry) {
    ++view.looked_at;
    const MemberState& member = *entry.second;
    return member.leaving == Leaving::kAsked && !view.blames.rests(member) && view.line.has_newest(member);
  });
}

bool targets_due(const StageView& view, std::uint64_t round_targets, bool cap_over) {
  std::uint64_t settled = 0, wanted = 0;
  for (const auto& [session, member] : view.members) {
    ++view.looked_at;
    if (!view.line.has_newest(*member) || view.blames.rests(*member)) continue;
    settled += member->settled;
    if (!view.blames.doubted(*member)) wanted += round_targets;
  }
  if (settled == 0) return false;
  if (wanted > 0 && settled >= wanted) return true;
  return cap_over;
}

bool somebody_fetches(const StageView& view) {
  for (const auto& [session, member] : view.members) {
    ++view.looked_at;
    if (member->to_fetch() || member->fetch.since) return true;
  }
  return false;
}

std::vector<Session> who_may_leave(const StageView& view, const std::vector<Session>& among) {
  std::vector<Session> free;
  for (const auto& [session, member] : view.members) {
    if (member->leaving != Leaving::kAsked || member->leave_after >= view.line.round_committed()) continue;
    if (std::ranges::find(among, session) != among.end()) free.push_back(session);
  }
  const bool stays = std::ranges::any_of(view.members, [&](const auto& entry) {
    return view.line.has_newest(*entry.second) && std::ranges::find(free, entry.first) == free.end();
  });
  if (stays || free.empty()) return free;
  view.members.at(free.back())->leaving = Leaving::kSaid;  // the anchor would go with them: one asks again
  free.pop_back();
  return free;
}

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
