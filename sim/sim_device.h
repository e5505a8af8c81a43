#pragma once
// A device in virtual time: a job takes what its kind costs, then runs at once, then its `done`. Frozen and killed with
// its host's loop. Thread: the simulation's.   Borrows: the loop.
#include <array>
#include <deque>
#include <optional>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/work_queue.h"

namespace shoal {

struct SimPace {
  Duration forward = 20ms, backward = 40ms, undo = 60ms, write = 5ms, round = 10ms, other = 1ms;
  std::optional<Duration> aside{};  // of what runs beside a device; none: as a round's jobs
};

// Each job takes `factor` times as long.
SimPace slowed(SimPace pace, double factor);

class SimDevice final : public WorkQueue {
 public:
  SimDevice(EventLoop& loop, SimPace pace) : loop_(loop), pace_(pace) {}
  void run(WorkKind task, std::function<void()> job, std::function<void()> done) override;
  void set_pace(SimPace pace) { pace_ = pace; }
  Duration starved() override;
  // From the next job on it has so much of its processor, above 0 and at most 1: other programs have the rest.
  void set_share(double share) { share_ = share; }
  // While it hangs no job ends; what was under way ends afterwards.
  void set_hung(bool hung);

 private:
  struct Item {
    WorkKind task;
    std::function<void()> job, done;
  };
  Duration cost(WorkKind task) const;
  void next();
  void end_job();

  EventLoop& loop_;
  SimPace pace_;
  std::deque<Item> queue_;
  std::optional<Item> job_;  // under way
  double share_ = 1, job_share_ = 1;
  TimePoint job_began_{};
  Duration starved_{};  // in the jobs that ended
  bool hung_ = false, overdue_ = false;
  Lifetime lifetime_;
};

}  // namespace shoal
