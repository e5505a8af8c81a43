#include "runtime/peer/leaving.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace shoal {

void Leaving::begin(TimePoint now) {
  SHOAL_CHECK(!wanted());
  until_ = now + kTime;
}

void Leaving::begin_pause(TimePoint now) {
  *this = {};
  pauses_ = true;
  until_ = now + kPauseTime;
}

Leaving::Step Leaving::next(TimePoint now, const Facts& facts) {
  SHOAL_CHECK(wanted());
  if (pauses_) {
    const bool tell = facts.last_holder && !std::exchange(told_last_, true);
    const bool ask = !facts.asked && (facts.quiet || now >= *until_ - kPauseRoundTime);
    return {.tell_last = tell, .ask = ask, .give_up = now >= *until_};
  }
  if (facts.last_holder) {
    until_ = now + kTime;  // once another holds the state, what no round secured gets its round
    return {.tell_last = !std::exchange(told_last_, true)};
  }
  told_last_ = false;
  if (to_ && facts.held_up) until_ = std::max(*until_, now + kRoundTime);
  return {.ask = !facts.asked && (facts.quiet || now >= *until_ - kRoundTime), .give_up = now >= *until_};
}

}  // namespace shoal
