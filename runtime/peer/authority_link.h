#pragma once
// A peer's link to the authority: when to dial it and when to ask the directory for it, whether it was ever there,
// since when it is away, how often it refused us; and when to give up. Hops between peers go on without the authority;
// what they need of it waits. Value without I/O: the time is handed in.   Thread: loop only.
#include <optional>
#include <string>

#include "common/result.h"
#include "common/time.h"

namespace shoal {

class AuthorityLink {
 public:
  static constexpr Duration kDialPeriod = 500ms, kLookUpPeriod = 5s;
  static constexpr Duration kAbsenceTold = 2s;  // a shorter one is not worth a line
  // A process that dies or begins while the keys are exchanged breaks off as one with another key does: who is refused
  // is so again.
  static constexpr int kRefusalsMax = 3;

  struct Patience {
    Duration first{};    // without any link, at the start
    Duration absence{};  // when it was there and went
  };
  explicit AuthorityLink(Patience patience) : patience_(patience) {}

  void start(TimePoint now) { started_ = now; }

  // Nothing was tried for a while, by our own wish: what passed uses up no patience.
  void resume(TimePoint now);

  // ---- while there is no link ----
  // True at most every kDialPeriod: dial now.
  bool take_dial(TimePoint now);
  // True at most every kLookUpPeriod, from kLookUpPeriod after the start on, and never while one is under way: the
  // addresses at hand do not answer, so the run may have moved. looked_up() ends it.
  bool take_look_up(TimePoint now);
  void looked_up() { looking_up_ = false; }

  // ---- the link ----
  // True: it was away, and absence_line() said so.
  bool up();
  void down(TimePoint now);
  // The cause of a link that broke or was never made. True: there is no use in trying again.
  bool refused_for_good(ErrorCode cause);

  // ---- patience ----
  bool away() const { return away_since_.has_value(); }
  // ERRORS: kUnreachable. `reason`: the newest cause, for people.
  Status check(TimePoint now, const std::string& reason) const;
  // The line about an absence, once each and when it lasts.
  std::optional<std::string> absence_line(TimePoint now, const std::string& reason);

 private:
  const Patience patience_;
  TimePoint started_{}, next_dial_{}, next_look_up_{};
  bool ever_up_ = false, looking_up_ = false, absence_told_ = false;
  std::optional<TimePoint> away_since_;
  int refusals_ = 0;  // in a row
};

}  // namespace shoal
