#pragma once
// Links between processes of which one alone can be dialled. A member that others cannot dial keeps links to the direct
// members of the stage before, of its own and of the next. A member that can be dialled and has no link to one that
// cannot asks the authority to knock there. Over a relay go the links of two that nobody can dial, at once; and others
// where knocks brought nothing, or where one that cannot be dialled knocks since its own dial failed.
//
// `now` comes with tick(). Thread: loop only.   Borrows: links.   Bounds: kStageMax links a stage, kKnocksPerSecond; an
// entry a member that is knocked at or knocks.
#include <map>
#include <optional>
#include <vector>

#include "transport/links.h"
#include "transport/token_bucket.h"

namespace shoal {

class ReverseLinks {
 public:
  static constexpr std::size_t kStageMax = 64;  // of a stage, in the order of rendezvous
  static constexpr Duration kLookPeriod = 1s;   // for links that are missing
  static constexpr Duration kKnockPause = 1s;   // at one session
  static constexpr Duration kRelayAfter = 1s;   // of knocking

  // None for `authority`: this process is it, and every member keeps a link to it. REQUIRES: links outlive it.
  ReverseLinks(Links& links, const Session& self, std::optional<PeerId> authority)
      : links_(links), self_(self), authority_(authority) {}

  void on_members(const MemberList& list);
  void tick(TimePoint now);  // dials whom a link is missing to
  // There is no link to the session, and no address; or its address does not answer one that nobody can dial.
  void knock(const Session& session);
  // It asks us for a link, which it cannot make.
  void knocked_by(const Session& session) { knocks_at_[session] = {.since = now_ - kRelayAfter, .last = now_}; }
  // Whether it may be called at its homes now.
  bool by_relay(const Session& session) const;
  bool only_dials() const { return callable_ && !dialable_; }
  bool callable() const { return callable_; }
  // A link came up, or could not be made over a relay either: knocking begins anew. False: there was none.
  bool forget(const Session& session) { return knocks_at_.erase(session) > 0; }
  const std::vector<PeerId>& kept() const { return kept_; }

 private:
  Links& links_;
  const Session self_;
  const std::optional<PeerId> authority_;
  std::vector<PeerId> kept_;  // empty: this process can be dialled, or is no member
  bool dialable_ = false;     // by what the list says of us
  bool callable_ = false;     // we are called at a relay: the list has us, and one for us
  struct Knocking {
    TimePoint since, last;
  };
  std::map<Session, Knocking> knocks_at_;  // lately
  TokenBucket knocks_{kKnocksPerSecond, kKnocksPerSecond};
  TimePoint now_, next_look_;
};

}  // namespace shoal
