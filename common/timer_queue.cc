#include "common/timer_queue.h"

#include <algorithm>
#include <utility>

namespace shoal {

TimerId TimerQueue::add(TimePoint when, TimePoint now, Task task) {
  const Key key{std::max(when, now), next_id_++};
  timers_.emplace(key, std::move(task));
  when_of_.emplace(key.id, key.when);
  return key.id;
}

void TimerQueue::cancel(TimerId timer) {
  const auto found = when_of_.find(timer);
  if (found == when_of_.end()) return;
  // The task may own what cancels it: it is destroyed after the queue is consistent again.
  auto node = timers_.extract(Key{found->second, timer});
  when_of_.erase(found);
}

std::optional<TimePoint> TimerQueue::earliest() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first.when;
}

std::optional<TimerQueue::Due> TimerQueue::pop_due(TimePoint now) {
  const auto first = timers_.begin();
  // Times are never before the turn that made them, so all older timers that are due stand before the new ones.
  if (first == timers_.end() || first->first.when > now || first->first.id >= turn_limit_) return std::nullopt;
  auto node = timers_.extract(first);
  when_of_.erase(node.key().id);
  return Due{node.key().id, std::move(node.mapped())};
}

}  // namespace shoal
