#include "router/roster.h"

namespace shoal {
namespace {

void add_homes(MemberList& list) {
  std::vector<std::string> relays;
  for (const RelayPlace& relay : list.relays) relays.push_back(relay.address);
  for (StageMembers& stage : list.stages)
    for (Member& member : stage.members)
      if (member.whereabouts.reach != Reach::kDirect) member.whereabouts.homes = homes_of(member.peer, relays);
}

}  // namespace

Roster::Change Roster::update(const MemberList& list) {
  Change change;
  if (list.epoch < list_.epoch) return change;
  ++updates_;
  list_ = list;
  add_homes(list_);
  for (const StageMembers& stage : list_.stages)
    for (const Member& member : stage.members) {
      const auto [at, is_new] = places_.try_emplace(member.session);
      if (is_new || at->second.whereabouts != member.whereabouts) change.added.push_back(member);
      at->second = {member.peer, stage.stage, member.whereabouts, member.serving, updates_};
    }
  for (const auto& [session, place] : places_)
    if (place.update != updates_) change.over.push_back(session);
  for (const Session& session : change.over) places_.erase(session);
  serving_.clear();
  for (const auto& [session, place] : places_)
    if (place.serving) serving_[place.stage].push_back(session);
  return change;
}

const std::vector<Session>& Roster::serving(StageId stage) const {
  static const std::vector<Session> kNobody;
  const auto it = serving_.find(stage);
  return it == serving_.end() ? kNobody : it->second;
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

const Whereabouts* Roster::whereabouts_of(const Session& session) const {
  const auto it = places_.find(session);
  return it == places_.end() ? nullptr : &it->second.whereabouts;
}

}  // namespace shoal
