#pragma once
// One measured run of `shoal-bench hop`: real processes of the shoal program, each started, measured between two train
// lines, and ended. Thread: one (Offspring's rule). Waiting: polls the event files that the processes write.
#include <functional>
#include <string>
#include <vector>

#include "bench/hop_setting.h"
#include "bench/star.h"
#include "bench/thread_times.h"
#include "common/result.h"

namespace shoal {

struct HopProcess {
  std::string name;     // "launch", "stage 0", ..., "solo 0"
  ThreadTimes threads;  // within the measure
};

struct HopFigures {
  double tokens_per_s = 0;
  double seconds = 0;            // of the measure
  double from = 0, to = 0;       // the same as wall time, seconds since 1970: picks event lines
  double machine_busy_s = 0;     // of all cores, everybody's work, within the measure
  std::uint64_t hop_timers = 0;  // hops that lost patience: should be 0 on a quiet machine
  std::vector<HopProcess> processes;
  std::string events_folder;
};

class HopRuns {
 public:
  struct Options {
    std::string program, netlab;  // paths
    std::string folder;           // exists
    std::function<void(const std::string&)> say;
    std::function<bool()> stop;  // asked often: the user wants an end (kInterrupted)
  };
  explicit HopRuns(Options options) : options_(std::move(options)) {}

  // launch and one join a stage, on loopback or, when `star` is given, each on a host of its own (hosts >= stages + 1).
  // ERRORS: kUnreachable (a process ended or nothing was trained in time; the message holds its last lines), kIo,
  // kMissing, kInterrupted.
  Result<HopFigures> swarm(const HopSetting& setting, const Star* star);
  // `count` processes of `solo --threads` at once; the rate is their sum.
  Result<HopFigures> solo(const HopSetting& setting, int threads, int count);

 private:
  std::string next_folder(const std::string& name);
  Options options_;
  int runs_ = 0;
};

}  // namespace shoal
