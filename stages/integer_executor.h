#pragma once
// The executor of the proofs: everything is a small integer in a float, so every sum is exact whatever its order, and
// what a replica holds can be compared with what was committed to the last unit.
//
// - The parameter vector is kIntegerParameters floats, starting at 0. The gradient of microbatch m at stage k, made at
//   the weights with stamp s, depends on (m, k, s) alone: integer_gradient(). So a sum shows at which weights each of
//   its gradients was made, and a gradient is taken out of it only at those. A graph reads its buffer when it is
//   differentiated, as the product's does: overwritten before, it gives the gradient of the weights that stand there
//   now. An inner step subtracts the accumulator (no AdamW); norm and clipping are only reported.
// - Activations and gradients have the real shape, (B, T, wire_width()), and repeat 64 integers derived from (m,
// tokens, path so
//   far). A stage checks what arrives and refuses anything else (kMalformed, counted in mismatches()), so wrong routing
//   shows at once. The pattern survives the int8 tile codec unchanged: every 64 elements start with 127, which makes
//   the tile's scale exactly 1.
//
// Exact while |sum| < 2^24, that is for more than 10^5 microbatches.
#include <algorithm>
#include <array>

#include "stages/windowed_executor.h"

namespace shoal {

inline constexpr std::size_t kIntegerParameters = 8;
using IntegerGradient = std::array<float, kIntegerParameters>;

// Integers in [-64, 64]. `stamp` is that of the weights, as in BackwardOutput.
IntegerGradient integer_gradient(const MicrobatchId& microbatch, StageId stage, WeightStamp stamp);
// Loss that the last stage reports: an integer below 1024 a target.
double integer_loss(const MicrobatchId& microbatch, std::uint64_t targets);

class IntegerExecutor : public WindowedExecutor {
 public:
  // `parameters`: floats of one array; those behind the first kIntegerParameters stay zeros and only weigh.
  explicit IntegerExecutor(const StageSpec& spec, std::size_t parameters = kIntegerParameters)
      : WindowedExecutor(spec), arena_(std::max(parameters, kIntegerParameters)) {}
  Arena& arena() override { return arena_; }
  // Its logits and activations follow from the ids alone, so that a stage can tell a strange activation.
  std::unique_ptr<TextStage> begin_text() override;
  std::uint64_t mismatches() const { return mismatches_; }

 protected:
  SwappableArena& swappable_arena() override { return arena_; }
  Result<Computed> compute(const StageInput& input, ArenaRole weights, bool keep_graph) override;
  Result<KeptTensor> differentiate_input(Graph& graph, const StageInput& input, const KeptTensor& gradient) override;
  Status differentiate_weights(Graph& graph, const StageInput& input, ArenaRole accumulator, float sign) override;
  Result<double> window_norm(ArenaRole accumulator, const InnerStep& step) override;
  void write_step(ArenaRole accumulator, const InnerStep& step, double norm, std::span<const float> shift) override;
  void write_shift(std::span<const float> shift) override;
  void zero(ArenaRole role) override;

 private:
  class IntegerText;
  struct BufferGraph;  // which of the two parameter buffers it reads
  Status expect(const HostTensor& tensor, std::uint64_t checksum, const StageInput& input, const char* role);
  // That of the weights in a buffer now.
  WeightStamp stamp_in(std::uint64_t buffer) const { return stamp() % 2 == buffer ? stamp() : stamp() - 1; }

  HostArena arena_;
  std::uint64_t mismatches_ = 0;
};

}  // namespace shoal
