#pragma once
// The loop that owns all protocol state of a process, and the clock it lives by.
// Production: common/os/thread_loop.h (one thread). Simulation: sim/sim_loop.h (virtual time). Both pass
// tests/common/event_loop_contract.h.
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "common/time.h"

namespace shoal {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;  // constant within one loop turn
  virtual WallTime wall() const = 0;  // for records and logs only
};

using TimerId = std::uint64_t;  // never 0, never reused

// For so long nothing else ran on the loop: no timer, no message, no signal.
struct LongestCallback {
  Duration took{};
  std::string_view name;  // what it was; empty: nobody said
  Duration computed{};    // processor time of the callback that used most: without what a busy machine adds
};

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

  // Says what the present callback is, for the measurement of the longest one; the last name said in it counts.
  // REQUIRES: the text lasts, as a literal does.
  void name_callback(std::string_view name) { callback_name_ = name; }
  // The longest since the last call. None: no callback ran, or time does not pass in one (simulation).
  virtual std::optional<LongestCallback> take_longest_callback() { return std::nullopt; }

 protected:
  std::string_view callback_name_;
};

}  // namespace shoal
