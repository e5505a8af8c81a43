#include "sim/sim_loop.h"

#include <algorithm>
#include <utility>

#include "common/bulk_bytes.h"
#include "common/check.h"
#include "common/ids.h"

namespace shoal {

SimLoop::SimLoop(WallTime wall_start) : wall_start_(wall_start) {}

void SimLoop::post(std::function<void()> task) { posted_.push_back(std::move(task)); }

TimerId SimLoop::at(TimePoint when, std::function<void()> task) { return timers_.add(when, now_, std::move(task)); }

void SimLoop::cancel(TimerId timer) { timers_.cancel(timer); }

void SimLoop::note(std::uint64_t word) { trace_ = mix64(trace_, word); }

bool SimLoop::step() {
  if (posted_.empty()) {
    const auto next = timers_.earliest();
    if (!next) return false;
    if (*next > now_) {
      now_ = *next;
      turns_at_this_time_ = 0;
    }
  }
  SHOAL_CHECK_LT(turns_at_this_time_, kTurnsAtOneTimeMax);
  ++turns_at_this_time_;
  turn();
  return true;
}

void SimLoop::turn() {
  ++turns_;
  note(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  timers_.begin_turn();
  auto batch = std::exchange(posted_, {});
  while (auto due = timers_.pop_due(now_)) {
    note(due->id);
    run_counted(due->task);
  }
  for (auto& posted : batch) {
    note(++posts_);
    const std::function<void()> task = std::move(posted);
    run_counted(task);
  }
}

void SimLoop::run_counted(const std::function<void()>& task) {
  bulk_bytes() = 0;
  task();
  most_bulk_bytes_ = std::max(most_bulk_bytes_, bulk_bytes());
}

void SimLoop::run_until(TimePoint until) {
  while (!posted_.empty() || (timers_.size() > 0 && *timers_.earliest() <= until)) {
    if (!step()) break;
  }
  if (until > now_) {
    now_ = until;
    turns_at_this_time_ = 0;
  }
}

bool SimLoop::run_until_true(const std::function<bool()>& done, TimePoint limit) {
  while (!done()) {
    if (posted_.empty() && (timers_.size() == 0 || *timers_.earliest() > limit)) return false;
    if (!step()) return false;
  }
  return true;
}

}  // namespace shoal
