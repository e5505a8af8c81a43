#pragma once
// Passes of an executor with host tensors, for tests: what goes in is an argument, what comes out is in the result.
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "stages/executor.h"
#include "stages/host_coder.h"

namespace shoal {

struct Forwarded : ForwardOutput {
  HostTensor activation;  // undefined on the last stage
};
struct Backwarded : BackwardOutput {
  HostTensor gradient;  // undefined on the first stage
};

inline Result<Forwarded> pass_forward(StageExecutor& stage, const ForwardInput& input, HostTensor activation = {}) {
  HostCoder coder(std::move(activation));
  SHOAL_ASSIGN(const ForwardOutput output, stage.forward(input, coder));
  return Forwarded{output, coder.output()};
}
inline Result<Forwarded> pass_evaluate(StageExecutor& stage, const ForwardInput& input, HostTensor activation = {}) {
  HostCoder coder(std::move(activation));
  SHOAL_ASSIGN(const ForwardOutput output, stage.evaluate(input, coder));
  return Forwarded{output, coder.output()};
}
inline Result<Backwarded> pass_backward(StageExecutor& stage, EntrySerial entry, HostTensor gradient,
                                        std::optional<WindowSlot> window) {
  HostCoder coder(std::move(gradient));
  SHOAL_TRY(stage.backward_input(entry, coder));
  SHOAL_ASSIGN(const BackwardOutput output, stage.backward_weights(entry, window));
  return Backwarded{output, coder.output()};
}

// Another coder, but for what goes on, which `change`, if any, changes first.
class ChangingCoder final : public FrameCoder {
 public:
  ChangingCoder(FrameCoder& inner, std::function<void(std::span<float>)> change)
      : inner_(inner), change_(std::move(change)) {}
  Result<double> decode(const PlacedSpace& to) override { return inner_.decode(to); }
  Status encode(const PlacedTensor& from) override {
    if (!change_) return inner_.encode(from);
    const std::span<const float> made = from.on_host().f32();
    std::vector<float> changed(made.begin(), made.end());
    change_(changed);
    return inner_.encode({{DType::kF32, from.tensor.shape, bytes_of(std::span<const float>(changed))}});
  }

 private:
  FrameCoder& inner_;
  std::function<void(std::span<float>)> change_;
};

}  // namespace shoal
