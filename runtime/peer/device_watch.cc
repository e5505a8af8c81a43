#include "runtime/peer/device_watch.h"

#include <algorithm>
#include <utility>

namespace shoal {

void DeviceWatch::begin(State& state, TimePoint now, Duration starved) {
  state.since = now - starved;
  state.starved = starved;
}

void DeviceWatch::run(WorkKind task, std::function<void()> job, std::function<void()> done) {
  if (state_->jobs++ == 0) {
    looked_at_ = clock_.now();
    begin(*state_, clock_.now(), device_.starved());
  }
  if (state_->jobs == 1) state_->task = task;
  device_.run(task, std::move(job), [state = state_, &clock = clock_, task, done = std::move(done)] {
    --state->jobs;
    if (state->device != nullptr) {  // else this callback comes after the device went
      const Duration starved = state->device->starved();
      state->times.note(task, std::max(clock.now() - starved - state->since, Duration(0)));
      begin(*state, clock.now(), starved);
    }
    done();
  });
}

void DeviceWatch::look() {
  const TimePoint now = clock_.now();
  if (now - std::exchange(looked_at_, now) > kStoodStill) begin(*state_, now, device_.starved());
}

}  // namespace shoal
