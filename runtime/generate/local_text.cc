#include "runtime/generate/local_text.h"

#include <cstring>

#include "stages/host_coder.h"

namespace shoal {

LocalText::LocalText(StageChain& chain) : chain_(chain), model_(chain.stages().front()->spec().model) { restart(); }

void LocalText::restart() {
  stages_.clear();
  for (const auto& stage : chain_.stages()) stages_.push_back(stage->begin_text());
}

std::uint64_t LocalText::context() const { return model_.context_length(); }

Result<std::vector<float>> LocalText::extend(std::span<const std::uint32_t> ids) {
  Buffer buffer(ids.size_bytes());
  std::memcpy(buffer.data(), ids.data(), ids.size_bytes());
  const HostTensor tokens =
      make_host_tensor(DType::kU32, {1, static_cast<std::int64_t>(ids.size())}, std::move(buffer));
  HostTensor travelling, logits;
  for (const auto& stage : stages_) {
    HostCoder coder(std::move(travelling));
    SHOAL_ASSIGN(logits, stage->extend(tokens, coder));
    travelling = coder.output();
  }
  return std::vector<float>(logits.f32().begin(), logits.f32().end());
}

}  // namespace shoal
