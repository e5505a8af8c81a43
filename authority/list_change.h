#pragma once
// What changed between two member lists: made, signed, checked, applied. Pure functions. Thread: any.
//
// The run's key signs a change itself, and in it the list that it goes from (epoch and id) and the one that it makes.
// So a peer that applies it checks one signature and one id, and its work follows what changed and not the list's
// length. Members of a stage stand in the order of their sessions.
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "transport/messages.h"

namespace shoal {

// The id of a packed MemberList (transport/envelope.h).
std::uint64_t list_id(ByteView packed);

// REQUIRES: lists of the same stages. The ids are left to the caller.
ListChange change_between(const MemberList& from, const MemberList& to);
// REQUIRES: `list` has the change's base epoch and id. ERRORS: kMalformed (it names a stage or session that the list
// does not have, or one that it has already); `list` is then of no use.
Status apply_change(const ListChange& change, MemberList& list);

// By the run's key.
using SignBytes = std::function<std::vector<std::uint8_t>(ByteView)>;
Result<MembersChange> sign_change(const ListChange& change, const RunId& run, const SignBytes& sign);
// ERRORS: kStale (what it makes is not above `known`; its signature is not looked at), kCorrupt (the run's key did not
// sign it), kMalformed, kTooLarge.
Result<ListChange> open_list_change(const MembersChange& message, const RunId& run, std::optional<Epoch> known = {});

// The newest member list that was told, and how others come to it: what changed by version, or the whole. Kept by the
// authority. Thread: loop only.   Bounds: one packed list, kChangesKept changes.
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
