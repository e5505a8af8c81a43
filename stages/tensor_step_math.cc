// Operations of the tensor library.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <cmath>

#include "stages/step_math.h"
#include "stages/torch_muon.h"
#include "stages/torch_screen.h"
#include "stages/torch_tensors.h"

namespace shoal {
namespace {

class TensorStepMath final : public StepMath {
 public:
  TensorStepMath(TorchArena& arena, std::vector<ParameterSpec> parameters)
      : arena_(arena), parameters_(std::move(parameters)) {}

  Status screen(std::span<const at::Tensor> gradients, const MicrobatchId& microbatch) override {
    at::Tensor finite = at::isfinite(gradients[0]).all();
    for (std::size_t i = 1; i < gradients.size(); ++i) finite = finite.logical_and(at::isfinite(gradients[i]).all());
    if (finite.item<bool>()) return Status::success();
    return screen_gradients(gradients, parameters_, microbatch);
  }

  void add(std::span<const at::Tensor> gradients, ArenaRole accumulator, float sign) override {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto offset = static_cast<std::int64_t>(parameters_[i].offset);
      arena_.flat(accumulator).narrow(0, offset, gradients[i].numel()).add_(gradients[i].view({-1}), sign);
    }
  }

  Result<double> window_norm(ArenaRole accumulator, const InnerStep& step) override {
    const at::NoGradGuard no_grad;
    const at::Tensor wide = arena_.flat(accumulator).to(at::kDouble);
    const double norm = std::sqrt(wide.dot(wide).item<double>());
    return check_mean_gradient_norm(norm / static_cast<double>(step.targets));
  }

  void write_step(ArenaRole accumulator, const AdamWFactors& f, std::span<const float> shift) override {
    const at::NoGradGuard no_grad;
    if (!f.muon) {
      step_range(accumulator, f, parameters_);
    } else {
      for (const ParameterSpec& parameter : parameters_) {
        if (parameter.matrices > 0) {
          muon_by_tensors(arena_, accumulator, parameter, f, nullptr);
        } else {
          step_range(accumulator, f, {&parameter, 1});
        }
      }
    }
    if (!shift.empty()) arena_.flat(ArenaRole::kOther).add_(on_device(shift, arena_.device()));
  }

 private:
  // AdamW of neighbouring parameters.
  void step_range(ArenaRole accumulator, const AdamWFactors& f, std::span<const ParameterSpec> parameters) {
    const auto begin = static_cast<std::int64_t>(parameters.front().offset);
    const auto end = static_cast<std::int64_t>(parameters.back().offset) + element_count(parameters.back().shape);
    const auto part = [&](ArenaRole role) { return arena_.flat(role).narrow(0, begin, end - begin); };
    const at::Tensor gradient = part(accumulator).mul(f.gradient_scale);
    at::Tensor moment1 = part(ArenaRole::kMoment1), moment2 = part(ArenaRole::kMoment2);
    at::Tensor other = part(ArenaRole::kOther);
    moment2.mul_(f.beta2).addcmul_(gradient, gradient, 1 - f.beta2);
    const at::Tensor root = moment2.sqrt().mul_(f.root_scale).add_(f.eps);
    other.copy_(part(ArenaRole::kCurrent));
    for (const ParameterSpec& parameter : parameters) {
      if (!parameter.decays) continue;
      const auto at = static_cast<std::int64_t>(parameter.offset) - begin;
      other.narrow(0, at, element_count(parameter.shape)).mul_(f.keep);
    }
    if (f.rate_before != 0) other.addcdiv_(moment1, root, f.rate_before);  // the moment before the step
    moment1.mul_(f.beta1).add_(gradient, 1 - f.beta1);
    other.addcdiv_(moment1, root, -f.rate);
  }

  TorchArena& arena_;
  std::vector<ParameterSpec> parameters_;
};

}  // namespace

std::unique_ptr<StepMath> tensor_step_math(TorchArena& arena, std::vector<ParameterSpec> parameters) {
  return std::make_unique<TensorStepMath>(arena, std::move(parameters));
}

}  // namespace shoal
