#pragma once
// The product's executor on the processor, on each path of a step, for tests.
#include <cmath>

#include "stages/torch_executor.h"
#include "tests/stages/chain.h"
#include "tests/torch/twin_kernels.h"

namespace shoal {

inline constexpr StepPath kHost = StepPath::kBest, kTensors = StepPath::kTensors, kKernels = StepPath::kKernels;

inline ExecutorMaker torch_maker(StepPath path, int threads = 1, ComputeType compute = ComputeType::kFp32) {
  const char* const name = path == StepPath::kBest ? "host" : path == StepPath::kTensors ? "tensors" : "kernels";
  return {std::string(compute == ComputeType::kBf16 ? "bf16_" : "") + name,
          [=](const StageSpec& spec) -> std::unique_ptr<StageExecutor> {
            TorchOptions options;
            options.device = "cpu";
            options.threads = threads;
            options.compute = compute;
            options.step_path = path;
            options.kernels = &kTwinKernels;
            return std::move(*make_torch_executor(spec, options));
          },
          2e-6};
}

inline TorchArena& arena_of(Chain& chain, std::size_t stage) {
  return dynamic_cast<TorchArena&>(chain.at(stage).arena());
}

inline ModelSpec four_layer_model() {
  ModelSpec model = contract_model();
  model.layers = 4;
  return model;
}

// Per tensor: |a - b| <= tolerance * |b| in the 2-norm.
inline void expect_tensors_near(const std::vector<ParameterSpec>& parameters, const std::vector<float>& a,
                                const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (const ParameterSpec& parameter : parameters) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(element_count(parameter.shape)); ++i) {
      const double left = a[parameter.offset + i], right = b[parameter.offset + i];
      difference += (left - right) * (left - right);
      norm += right * right;
    }
    EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(norm)) << parameter.name;
    EXPECT_GT(norm, 0) << parameter.name;
  }
}

}  // namespace shoal
