#pragma once
// Passes a member's wish for a link on to the member that it cannot dial. That one dials what the list
// says of the other, or calls it at a relay of the list, so nobody is sent to a stranger.
//
// Thread: loop only.   Borrows: book, port, loop.   Bounds: kKnocksPerSecond a member, one a second of a pair.
#include <set>
#include <utility>

#include "authority/authority_port.h"
#include "authority/member_book.h"
#include "common/event_loop.h"

namespace shoal {

class Knocks {
 public:
  static constexpr int kStagesApart = 2;  // a microbatch's way is known so far (Waiting)

  Knocks(MemberBook& book, AuthorityPort& port, EventLoop& loop) : book_(book), port_(port), loop_(loop) {}
  void pass_on(const Session& from, const Knock& knock) {
    MemberState* const asks = book_.find(from);
    const MemberState* const asked = book_.find(knock.session);
    if (asks == nullptr || asked == nullptr) return;
    if (!asks->member.whereabouts.dialable() && book_.relays().empty()) return;
    const int apart = asks->stage.value - asked->stage.value;
    const TimePoint now = loop_.now();
    if (apart > kStagesApart || apart < -kStagesApart || !asks->knocks.take(now)) return;
    if (now - since_ >= 1s) {
      lately_.clear();
      since_ = now;
    }
    if (lately_.emplace(from, knock.session).second) port_.send(asked->member.peer, Knock{from});
  }

 private:
  MemberBook& book_;
  AuthorityPort& port_;
  EventLoop& loop_;
  std::set<std::pair<Session, Session>> lately_;  // in the second that began at since_
  TimePoint since_{};
};

}  // namespace shoal
