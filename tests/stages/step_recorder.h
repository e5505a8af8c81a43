#pragma once
// An executor of whole numbers that keeps the inner steps that it was asked for.
#include <span>
#include <vector>

#include "stages/integer_executor.h"

namespace shoal {

class StepRecorder final : public IntegerExecutor {
 public:
  // REQUIRES: `steps` outlives it.
  StepRecorder(const StageSpec& spec, std::vector<InnerStep>& steps) : IntegerExecutor(spec), steps_(steps) {}

 protected:
  void write_step(ArenaRole accumulator, const InnerStep& step, double norm, std::span<const float> shift) override {
    steps_.push_back(step);
    IntegerExecutor::write_step(accumulator, step, norm, shift);
  }

 private:
  std::vector<InnerStep>& steps_;
};

}  // namespace shoal
