// Kernels, queued on the stream that the tensor library computes on: what it wrote before is there, and it reads what
// they write.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>

#include "common/check.h"
#include "stages/step_math.h"
#include "stages/torch_muon.h"
#include "stages/torch_screen.h"
#include "stages/torch_tensors.h"

namespace shoal {
namespace {

class KernelStepMath final : public StepMath {
 public:
  KernelStepMath(TorchArena& arena, std::vector<ParameterSpec> parameters, const StepKernels& kernels)
      : arena_(arena), parameters_(std::move(parameters)), kernels_(kernels) {
    blocks_ = (arena.size() + kNormBlock - 1) / kNormBlock;
    sums_ = scratch(blocks_ * sizeof(double));
    found_ = scratch(sizeof(NonFinite));
    scale_ = scratch(sizeof(StepScale));
    ranges_ = scratch(parameters_.size() * sizeof(AdamWRange));
  }

  Status screen(std::span<const at::Tensor> gradients, const MicrobatchId& microbatch) override {
    const c10::DeviceGuard guard(arena_.device());
    auto* found = memory<NonFinite>(found_);
    SHOAL_TRY(kernels_.begin_screen(found, stream()));
    for (std::size_t i = 0; i < gradients.size(); ++i)
      SHOAL_TRY(kernels_.screen(floats(gradients[i]), count_of(i), parameters_[i].offset, found, stream()));
    if (read<NonFinite>(found_.cpu()).count == 0) return Status::success();
    return screen_gradients(gradients, parameters_, microbatch);
  }

  void add(std::span<const at::Tensor> gradients, ArenaRole accumulator, float sign) override {
    const c10::DeviceGuard guard(arena_.device());
    float* sums = floats(arena_.flat(accumulator));
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      must_launch(kernels_.accumulate_unless(memory<NonFinite>(found_), sums + parameters_[i].offset,
                                             floats(gradients[i]), count_of(i), sign, stream()));
    }
  }

  Result<double> window_norm(ArenaRole accumulator, const InnerStep& step) override {
    const c10::DeviceGuard guard(arena_.device());
    auto* sums = memory<double>(sums_);
    SHOAL_TRY(kernels_.norm_blocks(floats(arena_.flat(accumulator)), arena_.size(), sums, stream()));
    SHOAL_TRY(kernels_.step_scale(sums, blocks_, step.targets, step.clip_norm, memory<StepScale>(scale_), stream()));
    return check_mean_gradient_norm(read<StepScale>(scale_.cpu()).norm);
  }

  void write_step(ArenaRole accumulator, const AdamWFactors& f, std::span<const float> shift) override {
    const at::NoGradGuard no_grad;
    const c10::DeviceGuard guard(arena_.device());
    at::Tensor added;
    if (!shift.empty()) added = on_device(shift, arena_.device());
    std::vector<AdamWRange> ranges;
    for (const ParameterSpec& parameter : parameters_) {
      const bool matrices = f.muon && parameter.matrices > 0;
      if (matrices) muon_by_tensors(arena_, accumulator, parameter, f, shift.empty() ? nullptr : &added);
      ranges.push_back({parameter.offset + static_cast<std::uint64_t>(element_count(parameter.shape)),
                        parameter.decays ? f.keep : 1.0f, matrices ? 1u : 0u});
    }
    ranges_.copy_(at::from_blob(ranges.data(), {ranges_.numel()}, at::TensorOptions().dtype(at::kByte)));
    AdamWFlat arrays;
    arrays.parameters = floats(arena_.flat(ArenaRole::kCurrent));
    arrays.gradient_sum = floats(arena_.flat(accumulator));
    arrays.moment1 = arrays.moment1_out = floats(arena_.flat(ArenaRole::kMoment1));
    arrays.moment2 = arrays.moment2_out = floats(arena_.flat(ArenaRole::kMoment2));
    arrays.parameters_out = floats(arena_.flat(ArenaRole::kOther));
    if (!shift.empty()) arrays.shift = floats(added);
    must_launch(kernels_.adamw(f, memory<StepScale>(scale_), memory<AdamWRange>(ranges_), ranges.size(), arrays,
                               arena_.size(), stream()));
  }

 private:
  at::Tensor scratch(std::size_t bytes) const {
    return at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions().dtype(at::kByte).device(arena_.device()));
  }
  template <class T>
  static T* memory(const at::Tensor& tensor) {
    return reinterpret_cast<T*>(tensor.data_ptr());
  }
  static float* floats(const at::Tensor& tensor) { return memory<float>(tensor); }
  // REQUIRES: on the host.
  template <class T>
  static T read(const at::Tensor& tensor) {
    T value;
    std::memcpy(&value, tensor.const_data_ptr(), sizeof(T));
    return value;
  }
  std::size_t count_of(std::size_t parameter) const {
    return static_cast<std::size_t>(element_count(parameters_[parameter].shape));
  }
  CudaStream stream() const {
    if (arena_.on_host()) return nullptr;
    return c10::impl::VirtualGuardImpl(arena_.device().type()).getStream(arena_.device()).native_handle();
  }
  // Nothing of a launch depends on what is computed: one that is refused is a broken device.
  static void must_launch(const Status& launched) {
    if (!launched.ok()) check_failed(__FILE__, __LINE__, "the device takes a launch", launched.error().message);
  }

  TorchArena& arena_;
  std::vector<ParameterSpec> parameters_;
  const StepKernels& kernels_;
  std::size_t blocks_ = 0;                    // of the norm
  at::Tensor sums_, found_, scale_, ranges_;  // on the device, as bytes
};

}  // namespace

std::unique_ptr<StepMath> kernel_step_math(TorchArena& arena, std::vector<ParameterSpec> parameters,
                                           const StepKernels& kernels) {
  return std::make_unique<KernelStepMath>(arena, std::move(parameters), kernels);
}

}  // namespace shoal
