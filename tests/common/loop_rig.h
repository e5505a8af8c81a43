#pragma once
// Drives one test body on a loop, real or simulated, until the body says that it is finished.
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "common/os/thread_loop.h"
#include "common/rng.h"
#include "sim/sim_loop.h"

namespace shoal {

using Finish = std::function<void()>;

// The loop runs on the test's own thread; a watchdog ends a body that never finishes.
class RealLoopRig {
 public:
  EventLoop& loop() { return loop_; }
  bool run(const std::function<void(Finish)>& body) {
    bool finished = false;
    loop_.post([&] {
      body([&] {
        finished = true;
        loop_.stop();
      });
    });
    std::mutex mutex;
    std::condition_variable over_signal;
    bool over = false;
    std::thread watchdog([&] {
      std::unique_lock lock(mutex);
      if (!over_signal.wait_for(lock, std::chrono::seconds(30), [&] { return over; })) loop_.stop();
    });
    loop_.run();
    {
      const std::lock_guard lock(mutex);
      over = true;
    }
    over_signal.notify_one();
    watchdog.join();
    return finished;
  }

 private:
  ThreadLoop loop_;
};

class SimLoopRig {
 public:
  SimLoop& loop() { return loop_; }
  bool run(const std::function<void(Finish)>& body) {
    bool finished = false;
    loop_.post([&] { body([&] { finished = true; }); });
    return loop_.run_until_true([&] { return finished; }, loop_.now() + std::chrono::hours(1));
  }

 private:
  SimLoop loop_;
};

}  // namespace shoal
