#pragma once
// Whether others can reach us: the authority dials before it admits anybody (runtime/launch/dial_back.h) and keeps out
// who cannot exchange rounds (authority/unreachable_pairs.h). Since when it does not admit us, what a person is told of
// that and how often, and when to give up. Asking again is Membership's (authority/membership.h). Value without I/O:
// the time is handed in.   Thread: loop only.
#include <optional>
#include <string>

#include "common/result.h"
#include "common/time.h"

namespace shoal {

class Reachability {
 public:
  struct Patience {
    Duration first{};      // of one that was never admitted
    Duration returning{};  // of one that was: it may hold a stage's state from an earlier session
  };
  explicit Reachability(Patience patience) : patience_(patience) {}

  void admitted();
  bool ever_admitted() const { return ever_admitted_; }
  // The link is gone, and with it what was found over it.
  void link_down() { undialled_since_.reset(); }
  // We are not admitted for now: `what` says why. The line for people, unless the same was told; the status says it on.
  std::optional<std::string> undialled(TimePoint now, const std::string& what);
  // We are dialled, and not admitted yet for another reason: no patience is used up. The line for people, as above.
  std::optional<std::string> told_to_wait(const std::string& what);
  // Why we are not admitted; empty before the first answer of that kind.
  const std::string& why() const { return why_; }
  // ERRORS: kUnreachable (nobody could dial us for too long).
  Status check(TimePoint now) const;

 private:
  const Patience patience_;
  bool ever_admitted_ = false;
  std::optional<TimePoint> undialled_since_;
  bool wait_told_ = false;
  std::string why_;
};

}  // namespace shoal
