#pragma once
// What a training run says about itself, the same words in `solo`, `launch` and `demo`. Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"

namespace shoal {

struct TrainLine {
  std::uint64_t step = 0;              // global steps done
  std::uint64_t steps = 0;             // in all; 0 = no end is known
  double loss = 0;                     // nats a target, mean of the step
  std::optional<double> validation{};  // the last estimate, nats a target
  double lr = 0;                       // of the schedule, at these tokens
  double tokens_per_s = 0;
  std::uint64_t tokens = 0;               // committed so far
  std::uint64_t end_tokens = 0;           // in all; 0 = no end is known
  std::optional<Duration> left{};         // until then, at the rate of the last minute
  std::vector<std::uint32_t> peers;       // serving, per stage; empty in one process
  std::optional<std::uint64_t> faults{};  // sessions that were over without having left; swarm only
  Duration elapsed{};
  std::optional<Duration> disk_age{};  // of the oldest stage's newest checkpoint, where it is late
  std::optional<double> relay{};       // of its rate, what the launching process's relay carries, where that is told
  std::optional<Duration> parked{};    // the run stands still since then: no rate and no time left are known
};
// "390/404 96%  0:12 left  loss 2.237  val 2.301  lr 6.0e-4  25.3k tok/s  peers 2 2 1 2  faults 1", and "disk 12:00
// old" where a checkpoint is late, and "relay 31%". Where that is too wide, the learning rate goes first, then the
// peers, the time left and the tokens a second. Without a known end the tokens and the time since the start stand in
// their places. For a run that stands still, "parked 0:12" is where time, rate and peers were.
std::string text_of(const TrainLine& line, std::size_t columns);

std::string delay_text(double delay);  // "delay 0.7"

// The two ends of a loss curve.
class LossCurve {
 public:
  void add(double loss) { losses_.push_back(loss); }
  double first() const;  // of the first step; 0 without steps
  double last() const;   // mean over the last tenth of the steps, at least 1 and at most 20
  const std::vector<double>& steps() const { return losses_; }

 private:
  std::vector<double> losses_;
};

}  // namespace shoal
