#include "runtime/stage_peer/device_scheduler.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace shoal {

DeviceScheduler::DeviceScheduler(WorkQueue& device, const Clock& clock, std::shared_ptr<StageExecutor> executor,
                                 std::vector<JobSource> sources)
    : device_(device), clock_(clock), executor_(std::move(executor)), sources_(std::move(sources)) {}

void DeviceScheduler::run(WorkKind task, std::function<void(StageExecutor&)> job, std::function<void()> after) {
  SHOAL_CHECK(idle());
  state_ = State::kBusy;
  task_ = task;
  started_ = {clock_.now(), device_.starved()};
  device_.run(
      task, [executor = executor_, job = std::move(job)] { job(*executor); },
      lifetime_.guard([this, after = std::move(after)] {
        last_ = clock_.now() - started_.at;
        longest_ = std::max(longest_, last_);
        times_.note(task_, running());
        state_ = State::kIdle;
        after();
        pump();
      }));
}

void DeviceScheduler::ask(WorkKind task, std::function<void(StageExecutor&)> job, std::function<void()> after) {
  asked_.push_back({task, std::move(job), std::move(after)});
  pump();
}

void DeviceScheduler::pump() {
  if (!idle()) return;
  if (asked_.empty()) {
    (void)std::any_of(sources_.begin(), sources_.end(), [](const JobSource& start) { return start(); });
    return;
  }
  Asked next = std::move(asked_.front());
  asked_.pop_front();
  run(next.task, std::move(next.job), std::move(next.after));
}

// What is known of starving is some milliseconds old, so that a short job may begin with some of the job before it.
Duration DeviceScheduler::worked(const Start& start) const {
  return std::max(clock_.now() - start.at - (device_.starved() - start.starved), Duration::zero());
}

void DeviceScheduler::stop() {
  state_ = State::kStopped;
  lifetime_.end();
}

}  // namespace shoal
