#pragma once
// How old the newest checkpoint of each stage is, as its peers' beats say it, and when a person should hear of it: what
// a stage would lose with all its peers. Pure: the time is passed in. Thread: loop only.
#include <optional>
#include <string>
#include <vector>

#include "authority/authority.h"
#include "runtime/config/config.h"

namespace shoal {

class CheckpointWatch {
 public:
  // A checkpoint is late when it is older than so many times [checkpoint] every_s: before that it may wait for a slow
  // disk or a long job.
  static constexpr int kTimesLate = 3;

  // What is to be said now: of each stage once when its newest checkpoint is late, and again when it was not meanwhile.
  // A stage without a newer version than its checkpoint's is never late.
  std::vector<std::string> take(const std::vector<StageStatus>& stages, const RunConfig& config, TimePoint now);
  // Age of the oldest that is late; none: none is.
  std::optional<Duration> late() const { return late_; }

 private:
  struct Stage {
    std::optional<TimePoint> secured_at;  // seen first
    bool said = false;
  };
  std::vector<Stage> stages_;
  std::optional<Duration> late_;
};

}  // namespace shoal
