#pragma once
// For how long threads of this process were ready to run and had no processor, as the kernel's scheduler counts it
// (/proc/self/task/TID/schedstat, second figure).
//
// It is what tells a computation that is starved from one that hangs. The processor time that it used does not: a
// deadlock uses none either, and the use of a pool of threads does not say how much it lacked. Wall time does not: a
// machine with twenty busy programs makes twenty of each second. The threads are meant by their name: a thread that is
// started has the name of the one that started it, so that the OpenMP pool of a device's thread is found with it, and
// the threads of sockets and loops, which a job does not wait for, are left out.
//
// Between two looks the wait of the thread that waited longest counts: the threads of a pool wait for each other, so
// their waits do not add up, and what all of them had at once is not counted twice. A thread that sleeps, is blocked or
// waits for a page of its memory is not ready, and starves of nothing.
//
// Thread: one.   Bounds: looks at /proc at most once every kEvery.   Errors: none; where the kernel does not count
// (built without CONFIG_SCHED_INFO), nothing ever waits.
#include <map>
#include <string>

#include "common/time.h"

namespace shoal {

class ThreadWaits {
 public:
  static constexpr Duration kEvery = 250ms;

  // Threads of that name (at most 15 bytes of it, as the kernel keeps them).
  explicit ThreadWaits(std::string name) : name_(std::move(name)) {}
  // Since the first call; only rises. Behind by what a thread that waits at this moment waits, and by kEvery.
  Duration longest(TimePoint now);

 private:
  void look();

  const std::string name_;
  std::map<std::string, Duration> waited_;  // by thread number, as of the last look
  bool looked_ = false;
  TimePoint next_look_{};
  Duration longest_{};
};

}  // namespace shoal
