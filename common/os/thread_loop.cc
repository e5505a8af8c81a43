#include "common/os/thread_loop.h"

#include <algorithm>
#include <ctime>
#include <future>
#include <utility>

#include "common/check.h"

namespace shoal {

TimePoint monotonic_now() {
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

WallTime wall_now() {
  return WallTime(std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()));
}

namespace {
Duration thread_computed() {
  timespec time{};
  SHOAL_CHECK(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}
}  // namespace

ThreadLoop::ThreadLoop() : loop_thread_(std::this_thread::get_id()) {}
ThreadLoop::~ThreadLoop() = default;

TimePoint ThreadLoop::now() const { return in_turn_ ? turn_now_ : monotonic_now(); }
WallTime ThreadLoop::wall() const { return wall_now(); }

void ThreadLoop::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
  }
  wake_.notify_one();
}

TimerId ThreadLoop::at(TimePoint when, std::function<void()> task) {
  SHOAL_CHECK(on_loop_thread());
  return timers_.add(when, now(), std::move(task));
}

void ThreadLoop::cancel(TimerId timer) {
  SHOAL_CHECK(on_loop_thread());
  timers_.cancel(timer);
}

void ThreadLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
}

void ThreadLoop::run() {
  loop_thread_ = std::this_thread::get_id();
  while (!stopping_) {
    wait_for_work();
    if (!stopping_) turn();
  }
  stopping_ = false;
}

// Takes what was posted, or returns when the next timer is due.
void ThreadLoop::wait_for_work() {
  if (!batch_.empty()) return;
  std::unique_lock lock(mutex_);
  while (posted_.empty() && !stopping_) {
    const auto next = timers_.earliest();
    if (!next) {
      wake_.wait(lock);
      continue;
    }
    if (*next <= monotonic_now()) break;
    const std::chrono::steady_clock::time_point until{
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(next->time_since_epoch())};
    wake_.wait_until(lock, until);
  }
  std::swap(batch_, posted_);
}

void ThreadLoop::turn() {
  turn_now_ = monotonic_now();
  computed_ = thread_computed();
  in_turn_ = true;
  timers_.begin_turn();
  while (!stopping_) {
    auto due = timers_.pop_due(turn_now_);
    if (!due) break;
    run_measured(std::move(due->task));
  }
  std::size_t ran = 0;
  while (ran < batch_.size() && !stopping_) run_measured(std::move(batch_[ran++]));
  batch_.erase(batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(ran));
  in_turn_ = false;
}

// With what the task captured, which dies here.
void ThreadLoop::run_measured(std::function<void()> task) {
  const TimePoint began = monotonic_now();
  callback_name_ = {};
  task();
  task = nullptr;
  const Duration took = monotonic_now() - began;
  if (!longest_) longest_.emplace();
  if (took > longest_->took) longest_->took = took, longest_->name = callback_name_;
  if (took <= longest_->computed) return;  // it cannot have computed for longer; the clock is a system call
  const Duration computed = thread_computed();
  longest_->computed = std::max(longest_->computed, computed - std::exchange(computed_, computed));
}

std::optional<LongestCallback> ThreadLoop::take_longest_callback() {
  SHOAL_CHECK(on_loop_thread());
  return std::exchange(longest_, std::nullopt);
}

void LoopThread::call(std::function<void()> task) {
  SHOAL_CHECK(std::this_thread::get_id() != thread_.get_id());
  std::promise<void> done;
  loop_.post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace shoal
