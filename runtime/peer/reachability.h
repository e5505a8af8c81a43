#pragma once
// How others reach us. The authority dials us and says on the member list what answered (runtime/launch/dial_back.h);
// a machine that nobody can dial takes part over links that it dials itself, and has the authority try again. What a
// person is told of that, and of not being admitted for now: a pair that cannot exchange rounds is parted
// (authority/unreachable_pairs.h). Asking to join again is Membership's. Value without I/O: the time is handed in.
// Thread: loop only.
#include <optional>
#include <string>
#include <vector>

#include "common/backoff.h"
#include "common/result.h"
#include "common/time.h"
#include "transport/messages.h"

namespace shoal {

class Reachability {
 public:
  // To be dialled again: soon, for what failed may be over by then, and in pauses that double up to the other.
  static constexpr Duration kAskSoon = 5s, kAskAgain = 600s;

  void admitted();
  bool ever_admitted() const { return ever_admitted_; }
  // The link is gone, and with it what was found over it: another may come from another address.
  void link_down();
  // Others are told other addresses than before: the authority is asked to dial them. Of these the router maps
  // `mapped`; `mapping` says what came of asking it, empty where nobody did.
  void told_elsewhere(std::vector<std::string> mapped, std::string mapping);
  // What the list says of us. The line for people where we can be dialled now, unless that was told.
  std::optional<std::string> on_list(const Whereabouts& ours);
  // What the list says of others: how many members can be dialled, and at which relays (homes_of) we are called since
  // not everybody can dial `self`. Those, where they are others than before.
  std::optional<std::vector<std::string>> on_others(const MemberList& list, const Member& self);
  // True: the authority is to be asked to dial us where we tell others, since it did not get everywhere.
  bool take_query(TimePoint now, const Whereabouts& told);
  // The line for people where not everybody can dial us, unless the same was told.
  std::optional<std::string> answered(TimePoint now, const ReachAnswer& answer);
  std::optional<Reach> reach() const { return found_ ? std::optional(found_->reach) : std::nullopt; }

  // We are not admitted for now: `what` says why. The line for people, unless the same was told; the status says it on.
  std::optional<std::string> kept_out(const std::string& what);
  // We are not admitted yet, for a reason that is over by itself. The line for people, as above.
  std::optional<std::string> told_to_wait(const std::string& what);
  // Why we are not admitted; empty before the first answer of that kind.
  const std::string& why() const { return why_; }

 private:
  // The line, with the `rest` that counts, unless the same was told.
  std::optional<std::string> unless_told(std::string line, const std::string& rest = "");

  bool ever_admitted_ = false;
  std::optional<Whereabouts> found_;  // as the list says
  std::vector<std::string> homes_;
  std::size_t dialable_ = 0;
  std::string told_;  // of our reach
  std::vector<std::string> mapped_;
  std::string mapping_;
  bool answered_ = false;
  Backoff pause_{kAskSoon, kAskAgain};
  std::optional<TimePoint> next_query_;
  bool wait_told_ = false;
  std::string why_;
};

}  // namespace shoal
