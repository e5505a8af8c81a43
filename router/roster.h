#pragma once
// The newest signed member list as the router needs it: who serves which stage, under which key and addresses, and whom
// we could not reach lately. Pure bookkeeping; `now` is passed in. Thread: loop only. Bounds: those of the list.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "transport/messages.h"

namespace shoal {

class Roster {
 public:
  static constexpr Duration kDownTime =
      2s;  // after a lost link a session is not chosen for this long, unless it comes up again

  struct Change {
    std::vector<Member> added;
    std::vector<Session> over;  // were members and are not any more
  };
  // REQUIRES: the signature was checked. An older list changes nothing.
  Change update(const MemberList& list);

  // Serving sessions of `stage` without those that are down or rest; if there is no other, all of them.
  std::vector<Session> candidates(StageId stage, TimePoint now) const;
  std::optional<PeerId> peer_of(const Session& session) const;
  std::optional<Session> session_of(const PeerId& peer) const;
  std::optional<StageId> stage_of(const Session& session) const;
  void note_down(const Session& session, TimePoint now);  // of a stranger: nothing
  void note_up(const Session& session) { down_.erase(session); }
  // Its tensors could not be used: until then others are chosen, whatever becomes of its link. Of a stranger: nothing.
  void note_resting(const Session& session, TimePoint until);

  const MemberList& list() const { return list_; }
  std::size_t serving(StageId stage) const;

 private:
  struct Place {
    PeerId peer;
    StageId stage;
    bool serving = false;
    std::uint64_t update = 0;  // the newest one that names it
  };
  MemberList list_;
  std::uint64_t updates_ = 0;
  std::map<Session, Place> places_;
  std::map<StageId, std::vector<Session>> serving_;  // in the order of sessions: a hop's choice looks at no other stage
  std::map<Session, TimePoint> down_, resting_;      // until when
};

}  // namespace shoal
