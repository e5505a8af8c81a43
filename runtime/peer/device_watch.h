#pragma once
// The device, and for how long its present job could work: a device that hangs is known by the job that does not end,
// since the thread that waits for it can be neither ended nor asked. What does not count: time in which this process
// itself stood still, and time in which the job was ready and other programs had the processor (WorkQueue::starved).
// So there are three causes of a long job, told apart here: it is long (job_times.h), it starved, or it hangs.
// Thread: loop only, jobs as WorkQueue.   Borrows: the device, which outlives it; callbacks of jobs may come later.
#include <memory>

#include "common/event_loop.h"
#include "runtime/stage_peer/job_times.h"

namespace shoal {

class DeviceWatch final : public WorkQueue {
 public:
  static constexpr Duration kStoodStill = 2s;  // between two looks: this process did not run, or not well

  DeviceWatch(WorkQueue& device, const Clock& clock) : device_(device), clock_(clock) { state_->device = &device; }
  ~DeviceWatch() override { state_->device = nullptr; }
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;
  void run(WorkKind task, std::function<void()> job, std::function<void()> done) override;
  Duration starved() override { return device_.starved(); }
  // Called regularly.
  void look();
  // Whether a job is under way, or has ended just now.
  bool busy() const { return state_->jobs > 0; }
  // What passed for the device: the clock, less what its jobs starved. The times below are in it.
  TimePoint time() const { return clock_.now() - device_.starved(); }
  // Age of the job under way; 0 without one.
  Duration busy_for() const { return busy() ? time() - state_->since : Duration(0); }
  // What the job under way starved so far; 0 without one.
  Duration starved_for() const { return busy() ? device_.starved() - state_->starved : Duration(0); }
  // For its kind (JobTimes::longest); 0: nothing is known.
  Duration longest() const { return state_->times.longest(state_->task); }
  // When the job under way began. REQUIRES: there is one.
  TimePoint busy_since() const { return state_->since; }

 private:
  struct State {
    WorkQueue* device = nullptr;  // null: the watch is over, and the device may be, too
    std::size_t jobs = 0;
    WorkKind task = WorkKind::kForward;  // under way, or the last one
    JobTimes times;
    TimePoint since{};   // the present job began, in the device's time; later by what does not count
    Duration starved{};  // until it began
  };
  // The next job begins.
  static void begin(State& state, TimePoint now, Duration starved);

  WorkQueue& device_;
  const Clock& clock_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();  // shared with callbacks
  TimePoint looked_at_{};                                           // by the clock
};

}  // namespace shoal
