#include "stages/paced_executor.h"

#include <thread>

namespace shoal {

Wait wait_asleep() {
  return [](Duration duration) { std::this_thread::sleep_for(duration); };
}

Result<WindowedExecutor::Computed> PacedExecutor::compute(const StageInput& input, ArenaRole weights, bool keep_graph) {
  spend(pace_.forward);
  return IntegerExecutor::compute(input, weights, keep_graph);
}

Result<KeptTensor> PacedExecutor::differentiate_input(Graph& graph, const StageInput& input,
                                                      const KeptTensor& gradient) {
  spend(pace_.backward);
  return IntegerExecutor::differentiate_input(graph, input, gradient);
}

void PacedExecutor::write_step(ArenaRole accumulator, const InnerStep& step, double norm,
                               std::span<const float> shift) {
  spend(pace_.step);
  IntegerExecutor::write_step(accumulator, step, norm, shift);
}

void PacedExecutor::write_shift(std::span<const float> shift) {
  spend(pace_.step);
  IntegerExecutor::write_shift(shift);
}

}  // namespace shoal
