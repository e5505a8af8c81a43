#include "router/roster.h"

namespace shoal {

Roster::Change Roster::update(const MemberList& list) {
  Change change;
  if (list.epoch < list_.epoch) return change;
  ++updates_;
  for (const StageMembers& stage : list.stages)
    for (const Member& member : stage.members) {
      const auto [at, is_new] = places_.try_emplace(member.session);
      if (is_new) change.added.push_back(member);
      at->second = {member.peer, stage.stage, member.serving, updates_};
    }
  for (const auto& [session, place] : places_)
    if (place.update != updates_) change.over.push_back(session);
  for (const Session& session : change.over) {
    places_.erase(session);
    down_.erase(session);
    resting_.erase(session);
  }
  serving_.clear();
  for (const auto& [session, place] : places_)
    if (place.serving) serving_[place.stage].push_back(session);
  list_ = list;
  return change;
}

std::vector<Session> Roster::candidates(StageId stage, TimePoint now) const {
  const auto serving = serving_.find(stage);
  if (serving == serving_.end()) return {};
  std::vector<Session> up;
  up.reserve(serving->second.size());
  for (const Session& session : serving->second) {
    const auto passed = [&](const std::map<Session, TimePoint>& until) {
      const auto at = until.find(session);
      return at == until.end() || at->second <= now;
    };
    if (passed(down_) && passed(resting_)) up.push_back(session);
  }
  return up.empty() ? serving->second : up;
}

void Roster::note_down(const Session& session, TimePoint now) {
  if (places_.contains(session)) down_[session] = now + kDownTime;
}

void Roster::note_resting(const Session& session, TimePoint until) {
  if (places_.contains(session)) resting_[session] = until;
}

std::optional<PeerId> Roster::peer_of(const Session& session) const {
  const auto it = places_.find(session);
  if (it == places_.end()) return std::nullopt;
  return it->second.peer;
}

std::optional<Session> Roster::session_of(const PeerId& peer) const {
  for (const auto& [session, place] : places_)
    if (place.peer == peer) return session;
  return std::nullopt;
}

std::optional<StageId> Roster::stage_of(const Session& session) const {
  const auto it = places_.find(session);
  if (it == places_.end()) return std::nullopt;
  return it->second.stage;
}

std::size_t Roster::serving(StageId stage) const {
  const auto serving = serving_.find(stage);
  return serving == serving_.end() ? 0 : serving->second.size();
}

}  // namespace shoal
