#pragma once
// What a training run says about itself, the same words in `solo`, `launch` and `demo`. Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"

namespace shoal {

struct TrainLine {
  std::uint64_t step = 0;   // global steps done
  std::uint64_t steps = 0;  // in all; 0 = no end is known
  double loss = 0;          // nats a target, mean of the step
  double tokens_per_s = 0;
  std::uint64_t tokens = 0;                // committed so far
  std::vector<std::uint32_t> peers;        // serving, per stage; empty in one process
  std::optional<std::uint64_t> retries{};  // branches beyond the first so far; swarm only
  std::optional<double> delay{};           // mean of the latest stage's gradients, in inner steps; swarm only
  Duration elapsed{};
};
// "step   10/1000 | loss 3.4561 | 41.2k tok/s | tokens 1.31M | peers 2 2 1 2 | retries 3 | delay 0.7 | 0:01:15"
std::string text_of(const TrainLine& line);

// "41.2k", "1.31M": three significant digits.
std::string short_number(double value);
std::string delay_text(double delay);      // "delay 0.7"
std::string clock_text(Duration elapsed);  // "0:01:15"

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
