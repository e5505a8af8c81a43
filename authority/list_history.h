#pragma once
// The newest member list that was told, and how others come to it: what changed by version, or the whole. Kept by the
// authority. Thread: loop only.   Bounds: one packed list, kChangesKept changes.
#include <cstdint>
#include <deque>
#include <vector>

#include "authority/list_change.h"

namespace shoal {

class ListHistory {
 public:
  static constexpr std::size_t kChangesKept = 64;

  ListHistory(RunId run, SignBytes sign) : run_(run), sign_(std::move(sign)) {}
  // Makes `list` the newest. What is to be sent to a member that has the one before: the change, or the whole list
  // where that is shorter or there was none. REQUIRES: epochs rise.   ERRORS: kTooLarge (nothing changed).
  Result<Message> tell(const MemberList& list);
  const MemberList& newest() const { return list_; }
  std::uint64_t id() const { return id_; }
  // What brings to the newest whoever has the list of this epoch and id, in order; nothing if that is the newest.
  std::vector<Message> since(Epoch epoch, std::uint64_t id);

 private:
  struct Told {
    Epoch base;
    std::uint64_t base_id;
    MembersChange message;
  };
  const Members& whole();  // signed when it is first asked for

  RunId run_;
  SignBytes sign_;
  MemberList list_;
  std::uint64_t id_ = 0;
  Members whole_;
  std::deque<Told> changes_;  // each begins where the one before ends, the last ends with the newest
};

}  // namespace shoal
