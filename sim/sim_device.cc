#include "sim/sim_device.h"

#include <utility>

#include "common/bulk_bytes.h"

namespace shoal {

SimPace slowed(SimPace pace, double factor) {
  const auto slow = [factor](Duration& each) { each = from_seconds(seconds_of(each) * factor); };
  for (Duration* each : {&pace.forward, &pace.backward, &pace.undo, &pace.write, &pace.round, &pace.other}) slow(*each);
  if (pace.aside) slow(*pace.aside);
  return pace;
}

Duration SimDevice::cost(WorkKind task) const {
  switch (task) {
    case WorkKind::kForward:
    case WorkKind::kEvaluate:
    case WorkKind::kText:
      return pace_.forward;
    case WorkKind::kBackward:
      return pace_.backward;
    case WorkKind::kUndo:
      return pace_.undo;
    case WorkKind::kWrite:
    case WorkKind::kShift:
      return pace_.write;
    case WorkKind::kAside:
      return pace_.aside.value_or(pace_.round);
    case WorkKind::kSnapshot:
    case WorkKind::kCommit:
    case WorkKind::kAbandon:
      return pace_.round;
    case WorkKind::kRelease:
    case WorkKind::kBuild:
    case WorkKind::kSeed:
    case WorkKind::kLoad:
    case WorkKind::kImage:
    case WorkKind::kDrop:
      return pace_.other;
  }
  return pace_.other;
}

void SimDevice::run(WorkKind task, std::function<void()> job, std::function<void()> done) {
  queue_.push_back({task, std::move(job), std::move(done)});
  next();
}

void SimDevice::next() {
  if (job_ || queue_.empty()) return;
  job_ = std::move(queue_.front());
  queue_.pop_front();
  job_began_ = loop_.now();
  job_share_ = share_;
  const Duration needed = cost(job_->task);
  loop_.after(job_share_ == 1 ? needed : from_seconds(seconds_of(needed) / job_share_),
              lifetime_.guard([this] { hung_ ? void(overdue_ = true) : end_job(); }));
}

Duration SimDevice::starved() {
  if (!job_) return starved_;
  return starved_ + from_seconds((1 - job_share_) * seconds_of(loop_.now() - job_began_));
}

void SimDevice::end_job() {
  starved_ = starved();
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
