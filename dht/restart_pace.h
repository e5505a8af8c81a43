#pragma once
// When a child that ended is started again. Value; pure: times are handed in.
//
// A stranger ends OpenDHT with one datagram, as often as he likes. A pause that only grows would do his work: one
// datagram in half a minute kept the child away nearly all the time. So a pause grows only while children do not live
// as long as the pause before them, which bounds what restarts cost, and falls as soon as they do: who is hit every few
// seconds is away for a part of a second each time, and when it is quiet the next pause is the shortest again.
#include <cstdint>

#include "common/backoff.h"

namespace shoal {

class RestartPace {
 public:
  static constexpr int kLongLife = 4;        // pauses; a child that lived so long had quiet
  static constexpr std::uint32_t kHunt = 3;  // short lives in a row

  RestartPace(Duration least, Duration most) : pause_{least, most} {}

  // A child that lived so long ended: the pause before the next one.
  Duration after(Duration life);
  // Somebody ends each child soon after its start: where it listens is known to him.
  bool hunted() const { return short_lives_ >= kHunt; }

 private:
  Backoff pause_;
  std::uint32_t short_lives_ = 0;
};

}  // namespace shoal
