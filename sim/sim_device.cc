#include "sim/sim_device.h"

#include <utility>

#include "common/bulk_bytes.h"

namespace shoal {

Duration SimDevice::cost(DeviceTask task) const {
  switch (task) {
    case DeviceTask::kForward:
    case DeviceTask::kEvaluate:
      return pace_.forward;
    case DeviceTask::kBackward:
      return pace_.backward;
    case DeviceTask::kUndo:
      return pace_.undo;
    case DeviceTask::kWrite:
    case DeviceTask::kShift:
      return pace_.write;
    case DeviceTask::kPrepare:
      return pace_.prepare.value_or(pace_.round);
    case DeviceTask::kContribute:
    case DeviceTask::kCommit:
    case DeviceTask::kAbandon:
    case DeviceTask::kAside:
      return pace_.round;
    case DeviceTask::kRelease:
    case DeviceTask::kBuild:
    case DeviceTask::kSeed:
    case DeviceTask::kLoad:
    case DeviceTask::kImage:
    case DeviceTask::kDrop:
      return pace_.other;
  }
  return pace_.other;
}

void SimDevice::run(DeviceTask task, std::function<void()> job, std::function<void()> done) {
  queue_.push_back({task, std::move(job), std::move(done)});
  next();
}

void SimDevice::next() {
  if (job_ || queue_.empty()) return;
  job_ = std::move(queue_.front());
  queue_.pop_front();
  loop_.after(cost(job_->task), lifetime_.guard([this] { hung_ ? void(overdue_ = true) : end_job(); }));
}

void SimDevice::end_job() {
  Item item = std::move(*job_);
  {
    const BulkElsewhere on_the_device;
    item.job();
    item.job = nullptr;
  }
  job_.reset();
  const auto watch = lifetime_.watch();
  item.done();
  if (!watch.over()) next();
}

void SimDevice::set_hung(bool hung) {
  hung_ = hung;
  if (!hung && std::exchange(overdue_, false)) loop_.post(lifetime_.guard([this] { end_job(); }));
}

}  // namespace shoal
