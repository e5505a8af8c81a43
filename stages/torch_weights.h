#pragma once
// The weights of a stage as its layers read them: each parameter, and the adapter that acts beside it. Internal to the
// files that see the tensor library. Thread: any.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stages/adapters.h"
#include "stages/arena.h"
#include "stages/compute.h"
#include "stages/late_gradients.h"

namespace at {
class Tensor;
}

namespace shoal {

class TorchArena;

// Refers to leaves, or to an arena's bf16 copies of them, and has none of its own: an arena counts the references.
struct Weight {
  const at::Tensor* values = nullptr;
  const at::Tensor* product = nullptr;              // what matrix products read: the values, or a bf16 copy
  const at::Tensor *down = nullptr, *up = nullptr;  // A (r, in) and B (out, r) of its adapter, as products read them
  float scale = 0;                                  // of the adapter
  LateGradients* late = nullptr;                    // of the graph that is being made; null: none is
  // Among the trained parameters: its own place, if it is one of them, and those of its adapter.
  std::optional<std::size_t> place{};
  AdapterPlaces adapter{};
  const at::Tensor& operator*() const { return *values; }
};

// Without adapters.
std::vector<Weight> plain_weights(std::span<const at::Tensor> values);

// x in the floating type in which the matrix is multiplied.
at::Tensor as_factor(const at::Tensor& x, const Weight& matrix);
// How a matrix lies in memory: (in, out), as x W, or (out, in), as x W^T.
enum class MatrixForm : std::uint8_t { kInputFirst, kOutputFirst };
// x (N, in) -> x W [+ bias], with what the matrix's adapter makes of x, if it has one: (N, out). The gradients of
// matrix, bias and adapter are late ones.
at::Tensor linear(const at::Tensor& x, MatrixForm form, const Weight& matrix, const Weight* bias = nullptr);

// Which leaves are the weights of which part. Immutable.
class StageWeights {
 public:
  StageWeights(const StageSpec& spec, ComputeType compute);
  // Those of a part (ParameterSpec::part), in the order of the family's row. They refer to what the arena holds.
  // `late`: of the graph that is made with them.
  std::vector<Weight> of_part(TorchArena& arena, ArenaRole trained, std::uint32_t part,
                              LateGradients* late = nullptr) const;

 private:
  const bool adapted_, narrow_;  // narrow: products read bf16
  const float scale_;
  const std::vector<ParameterSpec> parameters_;  // of the model: the base where there are adapters
  const std::vector<std::optional<AdapterPlaces>> adapters_;
};

}  // namespace shoal
