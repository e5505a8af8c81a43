#include "runtime/stage_peer/device_scheduler.h"

#include <utility>

#include "common/check.h"

namespace shoal {

DeviceScheduler::DeviceScheduler(DeviceQueue& device, std::shared_ptr<StageExecutor> executor, JobSource& source)
    : device_(device), executor_(std::move(executor)), source_(source) {}

void DeviceScheduler::run(DeviceTask task, std::function<void(StageExecutor&)> job, std::function<void()> after) {
  SHOAL_CHECK(idle());
  state_ = State::kBusy;
  device_.run(
      task, [executor = executor_, job = std::move(job)] { job(*executor); },
      [this, alive = alive_, after = std::move(after)] {
        if (!*alive) return;
        state_ = State::kIdle;
        ++finished_;
        after();
        pump();
      });
}

void DeviceScheduler::ask(DeviceTask task, std::function<void(StageExecutor&)> job, std::function<void()> after) {
  asked_.push_back({task, std::move(job), std::move(after)});
  pump();
}

void DeviceScheduler::pump() {
  if (!idle()) return;
  if (asked_.empty()) return source_.start_next();
  Asked next = std::move(asked_.front());
  asked_.pop_front();
  run(next.task, std::move(next.job), std::move(next.after));
}

void DeviceScheduler::stop() {
  state_ = State::kStopped;
  *alive_ = false;
}

}  // namespace shoal
