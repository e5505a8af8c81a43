#pragma once
// How a serving peer goes, rests, or changes its stage: it settles what is open, asks the authority for a round that
// secures its work, and gives up after a while. The last holder of its stage's state waits for another as long as
// nobody ends it; a pause waits for nobody, since the machine's owner wants the device. Value without I/O: the time is
// handed in.   Thread: loop only.
#include <optional>

#include "common/ids.h"
#include "common/time.h"

namespace shoal {

class Leaving {
 public:
  static constexpr Duration kTime = 30s;             // from the wish, or from when another holds the state
  static constexpr Duration kRoundTime = kTime / 3;  // of these for the round, however much is still open
  static constexpr Duration kPauseTime = 1500ms;     // of a pause: the device is free soon after
  static constexpr Duration kPauseRoundTime = 1s;    // of these for the round

  struct Facts {
    bool last_holder = false;  // if we go, the stage's state goes
    bool quiet = false;        // nothing is open here
    bool asked = false;        // the authority was asked to let us go
    bool held_up = false;      // the authority is away, or a round is under way: a move waits for that
  };
  struct Step {
    bool tell_last = false;  // say that the state goes with us: once, until it is not so any more
    bool ask = false;        // ask the authority to let us go
    bool give_up = false;    // go as it is
  };

  // For another stage: the process stays.
  void begin_move(TimePoint now, StageId to) {
    begin(now);
    to_ = to;
  }
  std::optional<StageId> to() const { return to_; }  // while it moves
  // The process stays, and serves nothing until it is told to. Also from a move, whose stage it forgets.
  void begin_pause(TimePoint now);
  bool pauses() const { return wanted() && pauses_; }
  bool for_good() const { return wanted() && !to_ && !pauses_; }
  void go_for_good(TimePoint now) {  // the process goes all the same
    to_.reset();
    pauses_ = false;
    until_ = now + kTime;
  }
  bool wanted() const { return until_.has_value(); }
  // REQUIRES: !wanted().
  void begin(TimePoint now);
  // What is to be done now. REQUIRES: wanted().
  Step next(TimePoint now, const Facts& facts);

 private:
  std::optional<TimePoint> until_;
  std::optional<StageId> to_;
  bool pauses_ = false;
  bool told_last_ = false;
};

}  // namespace shoal
