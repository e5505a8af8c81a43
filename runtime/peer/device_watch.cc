#include "runtime/peer/device_watch.h"

#include <utility>

namespace shoal {

void DeviceWatch::run(WorkKind task, std::function<void()> job, std::function<void()> done) {
  if (state_->jobs++ == 0) state_->since = looked_at_ = clock_.now();
  if (state_->jobs == 1) state_->task = task;
  device_.run(task, std::move(job), [state = state_, &clock = clock_, task, done = std::move(done)] {
    --state->jobs;
    const TimePoint now = clock.now();
    state->times.note(task, now - state->since);
    state->since = now;
    done();
  });
}

void DeviceWatch::look() {
  const TimePoint now = clock_.now();
  if (now - std::exchange(looked_at_, now) > kStoodStill) state_->since = now;
}

}  // namespace shoal
