#pragma once
// The timers and posted tasks of one loop, in the order in which they run. Shared by the real and the simulated loop,
// so that both order tasks alike. Thread: one, the loop's.   Bounds: none of its own; who posts without limit runs out
// of memory.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "common/event_loop.h"

namespace shoal {

class TimerQueue {
 public:
  using Task = std::function<void()>;

  // A time before `now` counts as `now`. Timers of equal time run in the order of creation.
  TimerId add(TimePoint when, TimePoint now, Task task);
  void cancel(TimerId timer);
  std::optional<TimePoint> earliest() const;
  std::size_t size() const { return timers_.size(); }

  // Begins a turn: timers made from now on wait for the next one.
  void begin_turn() { turn_limit_ = next_id_; }
  struct Due {
    TimerId id;
    Task task;
  };
  // The next timer of this turn whose time has come, if any.
  std::optional<Due> pop_due(TimePoint now);

 private:
  struct Key {
    TimePoint when;
    TimerId id;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Task> timers_;
  std::unordered_map<TimerId, TimePoint> when_of_;
  TimerId next_id_ = 1;
  TimerId turn_limit_ = 1;
};

}  // namespace shoal
