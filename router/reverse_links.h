#pragma once
// Links between processes of which one alone can be dialled. A member that others cannot dial keeps links to the direct
// members of the stage before, of its own and of the next. A member that can be dialled and has no link to one that
// cannot asks the authority to knock there. Two that nobody can dial never meet.
//
// `now` comes with tick(). Thread: loop only.   Borrows: links.   Bounds: kStageMax links a stage, kKnocksPerSecond.
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

  // None for `authority`: this process is it, and every member keeps a link to it. REQUIRES: links outlive it.
  ReverseLinks(Links& links, const Session& self, std::optional<PeerId> authority)
      : links_(links), self_(self), authority_(authority) {}

  void on_members(const MemberList& list);
  void tick(TimePoint now);  // dials whom a link is missing to
  // There is no link to the session, and no address.
  void knock(const Session& session);
  const std::vector<PeerId>& kept() const { return kept_; }

 private:
  Links& links_;
  const Session self_;
  const std::optional<PeerId> authority_;
  std::vector<PeerId> kept_;              // empty: this process can be dialled, or is no member
  bool dialable_ = false;                 // by what the list says of us
  std::map<Session, TimePoint> knocked_;  // lately
  TokenBucket knocks_{kKnocksPerSecond, kKnocksPerSecond};
  TimePoint now_, next_look_;
};

}  // namespace shoal
