#include "bench/thread_times.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "demo/processor_watch.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

// Coarse, where there is no schedstat.
double seconds_of_stat(const fs::path& task) {
  std::string line;
  std::getline(std::ifstream(task / "stat"), line);
  const ProcessTicks ticks = parse_process_ticks(line).value_or(ProcessTicks());
  return static_cast<double>(ticks.used) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

ThreadTime& ThreadTime::operator+=(const ThreadTime& other) {
  on_core_s += other.on_core_s;
  ready_s += other.ready_s;
  return *this;
}

ThreadTime ThreadTime::operator-(const ThreadTime& other) const {
  return {on_core_s - other.on_core_s, ready_s - other.ready_s};
}

ThreadTimes thread_times(pid_t pid) {
  ThreadTimes times;
  std::error_code failure;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task", failure)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    double on_core_ns = 0, ready_ns = 0;
    ThreadTime time;
    if (std::ifstream(task.path() / "schedstat") >> on_core_ns >> ready_ns) {
      time = {on_core_ns / 1e9, ready_ns / 1e9};
    } else {
      time = {seconds_of_stat(task.path()), 0};
    }
    times[name] += time;
  }
  return times;
}

ThreadTimes difference(const ThreadTimes& later, const ThreadTimes& earlier) {
  ThreadTimes result = later;
  for (auto& [name, time] : result) {
    if (const auto before = earlier.find(name); before != earlier.end()) time = time - before->second;
  }
  return result;
}

ThreadTime total(const ThreadTimes& times) {
  ThreadTime sum;
  for (const auto& [name, time] : times) sum += time;
  return sum;
}

}  // namespace shoal
