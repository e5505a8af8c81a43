#pragma once
// The device, and for how long its present job runs: a device that hangs is known by the job that does not end, since
// the thread that waits for it can be neither ended nor asked. Time in which this process itself stood still does not
// count.
// Thread: loop only, jobs as WorkQueue.   Borrows: the device, which outlives it; callbacks of jobs may come later.
#include <memory>

#include "common/event_loop.h"
#include "runtime/stage_peer/job_times.h"

namespace shoal {

class DeviceWatch final : public WorkQueue {
 public:
  static constexpr Duration kStoodStill = 2s;  // between two looks: this process did not run, or not well

  DeviceWatch(WorkQueue& device, const Clock& clock) : device_(device), clock_(clock) {}
  void run(WorkKind task, std::function<void()> job, std::function<void()> done) override;
  // Called regularly.
  void look();
  // Whether a job is under way, or has ended just now.
  bool busy() const { return state_->jobs > 0; }
  // Age of the job under way; 0 without one.
  Duration busy_for() const { return state_->jobs == 0 ? Duration(0) : clock_.now() - state_->since; }
  // For its kind (JobTimes::longest); 0: nothing is known.
  Duration longest() const { return state_->times.longest(state_->task); }
  // When the job under way began. REQUIRES: there is one.
  TimePoint busy_since() const { return state_->since; }

 private:
  struct State {
    std::size_t jobs = 0;
    WorkKind task = WorkKind::kForward;  // under way, or the last one
    JobTimes times;
    TimePoint since{};  // the present job began; later by what does not count
  };
  WorkQueue& device_;
  const Clock& clock_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();  // shared with callbacks
  TimePoint looked_at_{};
};

}  // namespace shoal
