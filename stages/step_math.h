#pragma once
// What a training step does to the flat arrays of a stage, wherever they lie: gradients screened and added to a window,
// its norm, the optimiser's step. Three ways of it, all with the results of kernels/adamw_rule.h and
// kernels/accumulate.h; which one holds is the executor's choice (torch_executor.cc):
//   host     arrays of the processor: Highway, several threads.
//   kernels  one launch over the whole arena (kernels/step_kernels.h), queued on the tensor library's own stream: the
//            bits of `host`. The host waits for 16 bytes a contribution and for 16 a step.
//   tensors  operations of the tensor library, on any device: near `host`, and not its bits. For GPUs of a build
//            without CUDA kernels.
// Matrices that Muon steps take the tensor library's products in the last two. Thread: the executor's. Borrows the
// arena. Exceptions of the tensor library pass through.
#include <memory>
#include <span>
#include <vector>

#include "kernels/step_kernels.h"
#include "stages/adamw.h"
#include "stages/torch_arena.h"

namespace shoal {

class StepMath {
 public:
  virtual ~StepMath() = default;

  // One contribution: screen(), then add(), both with the gradients of all trained parameters in the order of the
  // arena, contiguous f32 on its device. ERRORS: kNonFinite, by microbatch and parameter; kUnsupported (the device
  // refused a launch).
  virtual Status screen(std::span<const at::Tensor> gradients, const MicrobatchId& microbatch) = 0;
  // accumulator += sign * gradients. REQUIRES: screen() said yes.
  virtual void add(std::span<const at::Tensor> gradients, ArenaRole accumulator, float sign) = 0;

  // The norm of the window's mean gradient. ERRORS: kNonFinite.
  virtual Result<double> window_norm(ArenaRole accumulator, const InnerStep& step) = 0;
  // kOther := the step from kCurrent, + shift (size() floats, or none); moments in place. REQUIRES: window_norm() of
  // the same accumulator and step came right before, and said yes.
  virtual void write_step(ArenaRole accumulator, const AdamWFactors& factors, std::span<const float> shift) = 0;
};

std::unique_ptr<StepMath> host_step_math(TorchArena& arena, std::vector<ParameterSpec> parameters);
std::unique_ptr<StepMath> tensor_step_math(TorchArena& arena, std::vector<ParameterSpec> parameters);
// REQUIRES: `kernels` reach the arena's memory, and outlive this.
std::unique_ptr<StepMath> kernel_step_math(TorchArena& arena, std::vector<ParameterSpec> parameters,
                                           const StepKernels& kernels);

}  // namespace shoal
