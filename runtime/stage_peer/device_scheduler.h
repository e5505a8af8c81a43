#pragma once
// Gives the device its next job: one at a time, chosen anew after every job, so that a choice is never older than what
// the job before it changed. First what was asked for from outside, in order; then what its sources give, in theirs.
//
// Thread: loop only; a job runs on the device with the executor, and may outlive the session.   Borrows: device,
// clock.   Bounds: one job under way; those asked for from outside wait in a queue.
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/work_queue.h"
#include "runtime/stage_peer/job_times.h"
#include "stages/executor.h"

namespace shoal {

// The device is free: run() a job and return true; or return false, and the next source is asked.
using JobSource = std::function<bool()>;

class DeviceScheduler {
 public:
  // REQUIRES: device and clock outlive it, and what the sources use does.
  DeviceScheduler(WorkQueue& device, const Clock& clock, std::shared_ptr<StageExecutor> executor,
                  std::vector<JobSource> sources);
  ~DeviceScheduler() { stop(); }
  DeviceScheduler(const DeviceScheduler&) = delete;
  DeviceScheduler& operator=(const DeviceScheduler&) = delete;

  // `after` runs on the loop unless stop() came first; then the next job starts. REQUIRES: idle().
  void run(WorkKind task, std::function<void(StageExecutor&)> job, std::function<void()> after);
  // As run(), when the device is free.
  void ask(WorkKind task, std::function<void(StageExecutor&)> job, std::function<void()> after);
  // Starts the next job if the device is free. Call when something changed that may allow one.
  void pump();
  // Nothing starts and no `after` runs any more. What is under way ends by itself.
  void stop();

  bool idle() const { return state_ == State::kIdle; }
  bool stopped() const { return state_ == State::kStopped; }
  // For how long the job under way could work (WorkQueue::starved); zero: none.
  Duration running() const { return state_ == State::kBusy ? worked(started_) : Duration::zero(); }
  // For the kind that is under way, or was last (JobTimes::longest); zero: nothing is known.
  Duration longest_of_kind() const { return times_.longest(task_); }
  Duration of_rounds() const { return times_.of_rounds(); }
  // With what they starved:
  Duration last() const { return last_; }        // of the job that ended last
  Duration longest() const { return longest_; }  // of any kind

 private:
  enum class State : std::uint8_t { kIdle, kBusy, kStopped };
  struct Asked {
    WorkKind task;
    std::function<void(StageExecutor&)> job;
    std::function<void()> after;
  };

  struct Start {
    TimePoint at{};
    Duration starved{};
  };
  Duration worked(const Start& start) const;

  WorkQueue& device_;
  const Clock& clock_;
  const std::shared_ptr<StageExecutor> executor_;
  const std::vector<JobSource> sources_;
  std::deque<Asked> asked_;
  State state_ = State::kIdle;
  WorkKind task_ = WorkKind::kForward;  // under way, or the last one
  Start started_{};
  Duration last_{}, longest_{};
  JobTimes times_;
  Lifetime lifetime_;
};

}  // namespace shoal
