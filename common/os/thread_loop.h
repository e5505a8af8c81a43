#pragma once
// The production loop: one thread sleeps until the next timer or the next posted task.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/event_loop.h"
#include "common/timer_queue.h"

namespace shoal {

// Thread: post() and stop() from any; at(), cancel(), now() from the loop's thread, and before run() from the one that
// constructed it. A turn = the timers that are due, then the tasks posted before the turn began; now() is constant in
// it. Ownership: borrows nothing; tasks that were not run are destroyed with the loop.
class ThreadLoop final : public EventLoop {
 public:
  ThreadLoop();
  ~ThreadLoop() override;
  ThreadLoop(const ThreadLoop&) = delete;
  ThreadLoop& operator=(const ThreadLoop&) = delete;

  // Makes the calling thread the loop's thread until stop(). May be called again after it returned.
  void run();
  // Ends run() after the current task; what is still posted stays for a later run(). A stop() before run() makes that
  // run() return at once.
  void stop();
  bool on_loop_thread() const { return loop_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  TimePoint now() const override;
  WallTime wall() const override;
  void post(std::function<void()> task) override;
  TimerId at(TimePoint when, std::function<void()> task) override;
  void cancel(TimerId timer) override;
  std::optional<LongestCallback> take_longest_callback() override;

 private:
  void wait_for_work();
  void turn();
  void run_measured(std::function<void()> task);

  std::atomic<std::thread::id> loop_thread_;
  std::atomic<bool> stopping_{false};
  bool in_turn_ = false;                    // loop only
  TimePoint turn_now_;                      // loop only
  TimerQueue timers_;                       // loop only
  std::optional<LongestCallback> longest_;  // loop only; since it was taken
  Duration computed_{};                     // loop only; of its thread, up to what is measured next

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
  std::vector<std::function<void()>> batch_;   // loop only: what a stopped turn left
};

// CLOCK_MONOTONIC and CLOCK_REALTIME, for what has no loop at hand.
TimePoint monotonic_now();
WallTime wall_now();

// Owns a ThreadLoop and the thread that runs it. The destructor stops and joins.
class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.run(); }) {}
  ~LoopThread() { stop(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  ThreadLoop& loop() { return loop_; }
  // Stops and joins; no task runs afterwards.
  void stop() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }
  // Runs `task` on the loop and waits for it. REQUIRES: not called on the loop's thread, not stopped.
  void call(std::function<void()> task);

 private:
  ThreadLoop loop_;
  std::thread thread_;
};

}  // namespace shoal
