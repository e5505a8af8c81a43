#pragma once
// How a program hears that it is to stop: Ctrl-C (SIGINT), SIGTERM, and SIGHUP, which a terminal that goes away sends.
// A program that was started to ignore SIGHUP (nohup) goes on to. Children do not inherit the handler, and system calls
// go on where they were. A program that looks by itself calls listen_for_stop(); one that runs a loop makes
// StopSignals.
#include <functional>
#include <memory>
#include <thread>

#include "common/event_loop.h"
#include "common/result.h"

namespace shoal {

// The first signal is kept, and the second ends the process at once.
void listen_for_stop();
bool stop_wanted();    // a signal came, in either way of hearing. Thread: any.
int stop_exit_code();  // 130 after Ctrl-C and when none came, 143 after SIGTERM, 129 after SIGHUP

// Signals become tasks of the loop: the first runs `first`, every later one `again`. A process that still runs
// kPatience after the second ends there. One object at a time; owns a thread.
class StopSignals {
 public:
  static constexpr Duration kPatience = 3s;
  // ERRORS: kIo (no pipe).
  static Result<std::unique_ptr<StopSignals>> listen(EventLoop& loop, std::function<void()> first,
                                                     std::function<void()> again);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  StopSignals(EventLoop& loop, std::function<void()> first, std::function<void()> again);
  void read_signals();

  EventLoop& loop_;
  std::function<void()> first_, again_;
  std::thread thread_;
};

}  // namespace shoal
