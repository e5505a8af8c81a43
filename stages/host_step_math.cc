// Arrays of the processor.
#include <ATen/core/Tensor.h>

#include "common/check.h"
#include "kernels/accumulate.h"
#include "stages/step_math.h"
#include "stages/torch_screen.h"
#include "stages/torch_tensors.h"

namespace shoal {
namespace {

class HostStepMath final : public StepMath {
 public:
  HostStepMath(TorchArena& arena, std::vector<ParameterSpec> parameters)
      : arena_(arena), parameters_(std::move(parameters)) {}

  Status screen(std::span<const at::Tensor> gradients, const MicrobatchId& microbatch) override {
    return screen_gradients(gradients, parameters_, microbatch);
  }

  void add(std::span<const at::Tensor> gradients, ArenaRole accumulator, float sign) override {
    const std::span<float> sums = arena_.span(accumulator);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::span<const float> values = floats_of(gradients[i]);
      torch_for()(values.size(), kParallelGrain, [&](std::size_t begin, std::size_t end) {
        const Status added = accumulate_checked(sums.subspan(parameters_[i].offset + begin, end - begin),
                                                values.subspan(begin, end - begin), sign);
        SHOAL_CHECK(added.ok());
      });
    }
  }

  Result<double> window_norm(ArenaRole accumulator, const InnerStep& step) override {
    return mean_gradient_norm(arena_.span(accumulator), step.targets, torch_for());
  }

  void write_step(ArenaRole accumulator, const AdamWFactors& factors, std::span<const float> shift) override {
    AdamWArrays arrays;
    arrays.parameters = arena_.span(ArenaRole::kCurrent);
    arrays.gradient_sum = arena_.span(accumulator);
    arrays.moment1 = arrays.moment1_out = arena_.span(ArenaRole::kMoment1);
    arrays.moment2 = arrays.moment2_out = arena_.span(ArenaRole::kMoment2);
    arrays.parameters_out = arena_.span(ArenaRole::kOther);
    arrays.shift = shift;
    adamw_apply(parameters_, factors, arrays, torch_for());
  }

 private:
  TorchArena& arena_;
  std::vector<ParameterSpec> parameters_;
};

}  // namespace

std::unique_ptr<StepMath> host_step_math(TorchArena& arena, std::vector<ParameterSpec> parameters) {
  return std::make_unique<HostStepMath>(arena, std::move(parameters));
}

}  // namespace shoal
