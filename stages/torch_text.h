#pragma once
// A text at a stage of the tensor library. Thread: its executor's.   Borrows: the executor's arena.
#include <functional>
#include <vector>

#include "stages/stage_spec.h"
#include "stages/text_stage.h"
#include "stages/torch_arena.h"
#include "stages/torch_weights.h"

namespace shoal {

class TorchText final : public TextStage {
 public:
  // `use_threads` is called in front of each computation.
  TorchText(const StageSpec& spec, TorchArena& arena, std::function<void()> use_threads);
  ~TorchText() override;
  Result<HostTensor> extend(const HostTensor& tokens, FrameCoder& coder) override;
  std::uint64_t places() const override { return places_; }
  std::uint64_t bytes() const override;

 private:
  struct Caches;
  Result<HostTensor> compute(const HostTensor& tokens, const HostTensor& activation);

  const StageSpec spec_;
  const StageWeights weights_;
  TorchArena& arena_;
  std::function<void()> use_threads_;
  std::unique_ptr<Caches> caches_;  // a layer's each
  std::uint64_t places_ = 0;
};

}  // namespace shoal
