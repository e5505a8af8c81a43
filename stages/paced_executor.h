#pragma once
// Integer arithmetic at the speed of somebody else's hardware: real shapes (B, T, d), settable durations, and a state
// as large as somebody else's model. With it rates, routing, recovery and transfer are measured on a small machine; the
// counting stays exact (stages/integer_executor.h).
#include <functional>

#include "common/time.h"
#include "stages/integer_executor.h"

namespace shoal {

struct Pace {
  Duration forward{};  // of one microbatch; an undo or a recomputed backward costs both
  Duration backward{};
  Duration step{};  // of one write to the parameters
};

// How time passes: a processor's sleep, or the simulation's clock.
using Wait = std::function<void(Duration)>;
Wait wait_asleep();  // blocks the calling thread, uses no processor time

class PacedExecutor : public IntegerExecutor {
 public:
  // The time that the arithmetic itself takes comes on top: microseconds, plus one pass over the tensor.
  PacedExecutor(const StageSpec& spec, Pace pace, Wait wait, std::size_t parameters = kIntegerParameters)
      : IntegerExecutor(spec, parameters), pace_(pace), wait_(std::move(wait)) {}
  // Takes effect with the next call. Thread: the device thread.
  void set_pace(Pace pace) { pace_ = pace; }
  Pace pace() const { return pace_; }

 protected:
  Result<Computed> compute(const StageInput& input, ArenaRole weights, bool keep_graph) override;
  Result<KeptTensor> differentiate_input(Graph& graph, const StageInput& input, const KeptTensor& gradient) override;
  void write_step(ArenaRole accumulator, const InnerStep& step, double norm, std::span<const float> shift) override;
  void write_shift(std::span<const float> shift) override;

 private:
  void spend(Duration duration) {
    if (duration > Duration::zero()) wait_(duration);
  }
  Pace pace_;
  Wait wait_;
};

}  // namespace shoal
