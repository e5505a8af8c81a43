#pragma once
// What a member should have of its stage's rounds by now, told again: messages are not reliable. At most once a second,
// to the members of a large round less often.
//
// Thread: loop only.   Borrows: port, loop.
#include "authority/authority_port.h"
#include "authority/open_round.h"
#include "authority/stage_line.h"
#include "common/event_loop.h"

namespace shoal {

class RoundRepeats {
 public:
  RoundRepeats(AuthorityPort& port, const EventLoop& loop) : port_(port), loop_(loop) {}

  // In front of a commit that does not name it: the last one that does.
  void send_commit(const MemberState& member, const RoundCommit& commit) const;
  // `round`: the open one; null: none.
  void on_link_up(MemberState& member, const StageLine& line, OpenRound* round) const;
  void repeat(MemberState& member, const StageLine& line, OpenRound* round) const;

 private:
  AuthorityPort& port_;
  const EventLoop& loop_;
};

}  // namespace shoal
