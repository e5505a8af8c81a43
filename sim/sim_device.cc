#include "sim/sim_device.h"

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
      return pace_.write;
    case DeviceTask::kRound:
      return pace_.round;
    case DeviceTask::kRelease:
    case DeviceTask::kState:
      return pace_.other;
  }
  return pace_.other;
}

void SimDevice::run(DeviceTask task, std::function<void()> job, std::function<void()> done) {
  queue_.push_back({task, std::move(job), std::move(done)});
  next();
}

void SimDevice::next() {
  if (busy_ || queue_.empty()) return;
  busy_ = true;
  auto item = std::make_shared<Item>(std::move(queue_.front()));
  queue_.pop_front();
  loop_.after(cost(item->task), lifetime_.guard([this, item, watch = lifetime_.watch()] {
    item->job();
    item->job = nullptr;
    busy_ = false;
    item->done();
    if (!watch.over()) next();
  }));
}

}  // namespace shoal
