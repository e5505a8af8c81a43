#pragma once
// How late the gradients of a run's stages are, as its peers' beats say it, and when a person should hear of it. The
// delay itself: events/delay.h. Pure: no I/O, no clock. Thread: loop only.
#include <optional>
#include <string>
#include <vector>

#include "authority/authority.h"
#include "runtime/config/config.h"

namespace shoal {

class DelayWatch {
 public:
  // Inner steps; of a stage, StageStatus::delay. With plain AdamW (look_ahead = 0) and gradients delayed by a queue in
  // one process, half a step cost 0.15 nats a target over 244 steps (2.47 instead of 2.32), a whole one 0.27.
  // Look-ahead with beta1 0.95 gave half of that back.
  static constexpr double kDelayBorne = 0.5;

  // Returns the warning when a stage is above kDelayBorne for the first time in this process, once.
  std::optional<std::string> take(const std::vector<StageStatus>& stages, const RunConfig& config);
  // The delay of the stage whose gradients are latest. A stage that has no peer now keeps what was said of it before.
  std::optional<double> largest() const;

 private:
  std::vector<std::optional<double>> delays_;  // by stage
  bool warned_ = false;
};

}  // namespace shoal
