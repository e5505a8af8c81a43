#pragma once
// The member list that follows from the book: made, told to all, given to a member that asks. A member gets the whole
// list once, then what changed of it (authority/list_change.h), at most every kListPauseMin to kListPauseMax; a BeatAck
// names the newest epoch, and a member that lacks one asks (MembersQuery).
//
// Thread: loop only.   Borrows: options, port, loop, book, log.   Bounds: one ListHistory.
#include <optional>
#include <string>
#include <vector>

#include "authority/authority_port.h"
#include "authority/decision_log.h"
#include "authority/list_change.h"
#include "authority/member_book.h"
#include "common/event_loop.h"

namespace shoal {

class MemberLists {
 public:
  static constexpr Duration kShownEvery = 20ms;

  // A list that cannot be made any more fails the log.
  MemberLists(const AuthorityOptions& options, AuthorityPort& port, EventLoop& loop, MemberBook& book,
              DecisionLog& log);
  ~MemberLists();
  MemberLists(const MemberLists&) = delete;
  MemberLists& operator=(const MemberLists&) = delete;

  // `heads`: the stages without their members.
  MemberList list_of(std::vector<StageMembers> heads) const;
  // The signed list with one more member, and without `older`.
  bool fits(MemberList list, const Whereabouts& whereabouts, const std::optional<Session>& older) const;
  // REQUIRES: in the order of the decisions. The trainer routes by it at once, members hear of it in a while.
  void publish(MemberList list);
  const MemberList& published() const { return published_; }
  // Versions changed since. REQUIRES: the effects of all decisions have run.
  bool is_stale() const { return published_.epoch != book_.epoch(); }
  Epoch told() const { return history_.newest().epoch; }  // the newest that was told to all
  // To a member that has the one of this epoch and id.
  void give(MemberState& member, Epoch epoch, std::uint64_t id);
  // To an observer, which is none of them: the whole list, unless it has it. At most each kShownEvery, to all of them.
  void show(const PeerId& reader, Epoch epoch, std::uint64_t id);

 private:
  void tell();
  void say_newer(MemberState& member, Epoch epoch);

  const AuthorityOptions& options_;
  AuthorityPort& port_;
  EventLoop& loop_;
  MemberBook& book_;
  DecisionLog& log_;
  MemberList published_;
  ListHistory history_;  // those that were told
  TimePoint next_tell_{}, next_shown_{};
  TimerId timer_ = 0;
};

}  // namespace shoal
