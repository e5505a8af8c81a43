#pragma once
// The newest signed member list as the router needs it: which sessions serve which stage, and under which key. Pure
// bookkeeping. Thread: loop only. Bounds: those of the list.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "transport/messages.h"

namespace shoal {

class Roster {
 public:
  struct Change {
    std::vector<Member> added;  // and those that are to be found elsewhere now
    std::vector<Session> over;  // were members and are not any more
  };
  // Adds where members that not everybody can dial are called: their homes among the list's relays.
  // REQUIRES: the signature was checked. An older list changes nothing.
  Change update(const MemberList& list);

  // In the order of sessions.
  const std::vector<Session>& serving(StageId stage) const;
  std::optional<PeerId> peer_of(const Session& session) const;
  std::optional<Session> session_of(const PeerId& peer) const;
  std::optional<StageId> stage_of(const Session& session) const;
  // Null: no member. Good until the next update.
  const Whereabouts* whereabouts_of(const Session& session) const;
  const MemberList& list() const { return list_; }

 private:
  struct Place {
    PeerId peer;
    StageId stage;
    Whereabouts whereabouts;
    bool serving = false;
    std::uint64_t update = 0;  // the newest one that names it
  };
  MemberList list_;
  std::uint64_t updates_ = 0;
  std::map<Session, Place> places_;
  std::map<StageId, std::vector<Session>> serving_;  // a hop's choice looks at no other stage
};

}  // namespace shoal
