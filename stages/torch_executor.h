#pragma once
// The product's executor: the stage's layers on libtorch, on the CPU or a GPU. Sees no torch header.
//
// Weights: the parameter tensors are leaves that read the arena's two buffers directly; an entry's graph keeps
// references to the leaves of the buffer it was made at. The arena is written behind autograd's back, so before every
// write the executor counts the references that are left to the buffer and stops the program if a graph outlived it
// (outside_references()). Gradients: a pass back yields that of the input, and of parameters what it makes on its way;
// those of matrices are made behind it (stages/late_gradients.h). With Recompute::kBlock, where one layer's graph is
// there at a time, this holds of the stage's first layer alone. All are scratch tensors; nothing is added to the window
// before every one of them passed the screen.
#include <memory>
#include <optional>
#include <string>

#include "stages/step_math.h"
#include "stages/torch_arena.h"
#include "stages/torch_weights.h"
#include "stages/windowed_executor.h"

namespace shoal {

enum class StepPath : std::uint8_t { kBest, kTensors, kKernels };

struct TorchOptions {
  std::string device = "auto";  // auto, cpu, cuda, cuda:N
  int threads = 1;              // of the CPU; one number for the whole process, the last one set holds
  ComputeType compute = ComputeType::kFp32;
  Recompute recompute = Recompute::kNone;
  bool forward_only = false;  // evaluates and continues texts: no memory is taken for training
  // How the arrays of a step are worked on. Best: by the processor where they are its own, else by CUDA kernels, else
  // by tensor operations. The others are for tests, which have the paths of a GPU on the processor.
  StepPath step_path = StepPath::kBest;
  const StepKernels* kernels = nullptr;  // of StepPath::kKernels; null: CUDA's
  // For tests, whose processor has a GPU's memory: tensors are handed to coders as those of a GPU are.
  bool as_cuda = false;
};

class TorchExecutor : public WindowedExecutor {
 public:
  // REQUIRES: `device` comes from choose_device(). Throws what the tensor library throws when memory is short: use
  // make_torch_executor.
  TorchExecutor(const StageSpec& spec, const std::string& device, const TorchOptions& options);
  Arena& arena() override { return arena_; }
  std::unique_ptr<TextStage> begin_text() override;
  // References from graphs to the memory of a parameter buffer.
  std::uint64_t outside_references(ArenaRole role) const { return arena_.outside_references(role); }

 protected:
  SwappableArena& swappable_arena() override { return arena_; }
  Result<KeptSpace> take_space(const Shape& shape) override;
  Result<Computed> compute(const StageInput& input, ArenaRole weights, bool keep_graph) override;
  Result<KeptTensor> differentiate_input(Graph& graph, const StageInput& input, const KeptTensor& gradient) override;
  Status differentiate_weights(Graph& graph, const StageInput& input, ArenaRole accumulator, float sign) override;
  Result<double> window_norm(ArenaRole accumulator, const InnerStep& step) override;
  void write_step(ArenaRole accumulator, const InnerStep& step, double norm, std::span<const float> shift) override;
  void write_shift(std::span<const float> shift) override;
  void zero(ArenaRole role) override;
  void about_to_overwrite() override;

 private:
  struct TorchGraph;
  Result<Computed> run_layers(const StageInput& input, ArenaRole weights, bool keep_graph);
  at::Tensor pass_back(TorchGraph& graph);
  at::Tensor pass_back_by_block(TorchGraph& graph);
  at::Tensor pass_part_back(TorchGraph& graph, const at::Tensor& made, const at::Tensor& read,
                            std::optional<std::uint32_t> part);
  void add_shift_to_other(std::span<const float> shift);
  // The calling thread computes: on as many others, on this device.
  void use_threads() const;
  // Where what it computes lies for coders. On a GPU of a build without CUDA kernels that is the host.
  Place place() const;
  KeptTensor keep(const at::Tensor& made) const;

  TorchArena arena_;
  std::vector<ParameterSpec> parameters_;  // those that are trained
  StageWeights weights_;
  std::unique_ptr<StepMath> math_;
  int threads_;
  bool blocks_;  // Recompute::kBlock
  bool placed_;  // tensors stay on the GPU
};

// ERRORS: choose_device's; kTooLarge (the parameters do not fit); kInput (threads < 1).
Result<std::unique_ptr<StageExecutor>> make_torch_executor(const StageSpec& spec, const std::string& device,
                                                           int threads);
Result<std::unique_ptr<TorchExecutor>> make_torch_executor(const StageSpec& spec, const TorchOptions& options);

}  // namespace shoal
