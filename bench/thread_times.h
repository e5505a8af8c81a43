#pragma once
// What the kernel says of a process's threads: time on a core, time spent ready but without one. Pure readers of /proc.
#include <sys/types.h>

#include <map>
#include <string>

namespace shoal {

struct ThreadTime {
  double on_core_s = 0;
  double ready_s = 0;  // waited for a core; 0 where the kernel does not count it
  ThreadTime& operator+=(const ThreadTime& other);
  ThreadTime operator-(const ThreadTime& other) const;
};

// By the threads' names, those of one name added up: "device", "ZMQbg/IO/0", ... Threads that ended are missing, and so
// is a process that ended.
using ThreadTimes = std::map<std::string, ThreadTime>;
ThreadTimes thread_times(pid_t pid);
ThreadTimes difference(const ThreadTimes& later, const ThreadTimes& earlier);
ThreadTime total(const ThreadTimes& times);

}  // namespace shoal
