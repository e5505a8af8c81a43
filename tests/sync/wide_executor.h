#pragma once
// An executor with the arena of a real model, which computes nothing: for the arithmetic of rules.
#include "stages/windowed_executor.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal::test {

// The books of WindowedExecutor over an arena as long as the real model's; computes nothing.
class WideExecutor final : public WindowedExecutor {
 public:
  WideExecutor() : WindowedExecutor(tiny_spec()), arena_(parameter_count(tiny_spec())) {}
  Arena& arena() override { return arena_; }
  std::unique_ptr<TextStage> begin_text() override { return nullptr; }

 protected:
  SwappableArena& swappable_arena() override { return arena_; }
  Result<Computed> compute(const StageInput&, ArenaRole, bool) override {
    return make_error(ErrorCode::kUnsupported, "no model");
  }
  Result<KeptTensor> differentiate_input(Graph&, const StageInput&, const KeptTensor&) override {
    return make_error(ErrorCode::kUnsupported, "no model");
  }
  Status differentiate_weights(Graph&, const StageInput&, ArenaRole, float) override {
    return make_error(ErrorCode::kUnsupported, "no model");
  }
  Result<double> window_norm(ArenaRole, const InnerStep&) override { return 0.0; }
  void write_step(ArenaRole, const InnerStep&, double, std::span<const float>) override {}
  void write_shift(std::span<const float> shift) override {
    for (std::size_t i = 0; i < shift.size(); ++i)
      arena_.span(ArenaRole::kOther)[i] = arena_.span(ArenaRole::kCurrent)[i] + shift[i];
  }
  void zero(ArenaRole role) override {
    for (float& value : arena_.span(role)) value = 0;
  }

 private:
  HostArena arena_;
};

}  // namespace shoal::test
