#pragma once
// A text of a model whose stages are all in this process. Thread: one.   Borrows: the chain.
#include <memory>
#include <vector>

#include "runtime/generate/generate.h"
#include "runtime/solo/stage_chain.h"

namespace shoal {

class LocalText final : public TextModel {
 public:
  explicit LocalText(StageChain& chain);  // REQUIRES: its anchors are the model
  Result<std::vector<float>> extend(std::span<const std::uint32_t> ids) override;
  std::uint64_t context() const override;
  void restart() override;

 private:
  StageChain& chain_;
  const ModelSpec model_;
  std::vector<std::unique_ptr<TextStage>> stages_;
};

}  // namespace shoal
