#include "bench/logits.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "common/os/posix_file.h"
#include "stages/host_coder.h"
#include "stages/pretrained/pretrained_folder.h"
#include "stages/torch_executor.h"

namespace shoal {
namespace {

constexpr std::size_t kTokensBytesMax = 1u << 20;

// Two stages where the model has as many layers, so that the split is seen, too.
Result<std::vector<std::unique_ptr<TorchExecutor>>> load_stages(const PretrainedFolder& folder) {
  const auto stages = static_cast<std::uint16_t>(std::min(2u, folder.model().layers));
  SHOAL_ASSIGN(const std::vector<StageSpec> specs, split_model(folder.model(), stages));
  std::vector<std::unique_ptr<TorchExecutor>> executors;
  for (const StageSpec& spec : specs) {
    SHOAL_ASSIGN(auto executor, make_torch_executor(spec, {.device = "cpu", .forward_only = true}));
    SHOAL_TRY(folder.read_stage(spec, executor->arena().span(ArenaRole::kAnchor)));
    executor->arena().push(ArenaRole::kAnchor);
    executors.push_back(std::move(executor));
  }
  return executors;
}

Result<std::vector<Bytes>> logits_of(const LogitsOptions& options) {
  SHOAL_ASSIGN(const PretrainedFolder folder, PretrainedFolder::open(options.folder));
  SHOAL_ASSIGN(const Bytes tokens, read_file(options.tokens, kTokensBytesMax));
  SHOAL_ASSIGN(const auto executors, load_stages(folder));
  std::vector<std::unique_ptr<TextStage>> texts;
  for (const auto& executor : executors) texts.push_back(executor->begin_text());
  std::vector<Bytes> rows;
  for (std::size_t at = 0; at + sizeof(std::uint32_t) <= tokens.size(); at += sizeof(std::uint32_t)) {
    const HostTensor token{DType::kU32, {1, 1}, tokens.slice(at, sizeof(std::uint32_t))};
    HostTensor travelling;
    for (const auto& text : texts) {
      HostCoder coder(std::move(travelling));
      SHOAL_ASSIGN(const HostTensor logits, text->extend(token, coder));
      travelling = coder.output();
      if (logits.defined()) rows.push_back(logits.bytes);
    }
  }
  return rows;
}

}  // namespace

Status run_logits(const LogitsOptions& options) {
  SHOAL_ASSIGN(const std::vector<Bytes> rows, logits_of(options));
  return replace_file(options.out, rows);
}

}  // namespace shoal
