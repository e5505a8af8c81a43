#pragma once
// The loop that owns all protocol state of a process, and the clock it lives by.
// Production: common/thread_loop.h (one thread). Simulation: sim/sim_loop.h (virtual time). Both pass
// tests/common/event_loop_contract.h.
#include <cstdint>
#include <functional>

#include "common/time.h"

namespace shoal {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;  // constant within one loop turn
  virtual WallTime wall() const = 0;  // for records and logs only
};

using TimerId = std::uint64_t;  // never 0, never reused

// Thread: everything loop only, except post(), which any thread may call.
class EventLoop : public Clock {
 public:
  // Runs `task` in a later turn, in the order of the calls of one thread.
  virtual void post(std::function<void()> task) = 0;
  // Runs `task` once at `when` or later (at the next turn if `when` has passed). Timers of equal time run in the order
  // of creation.
  virtual TimerId at(TimePoint when, std::function<void()> task) = 0;
  // No-op for a timer that ran or was cancelled.
  virtual void cancel(TimerId timer) = 0;

  TimerId after(Duration delay, std::function<void()> task) { return at(now() + delay, std::move(task)); }
};

}  // namespace shoal
