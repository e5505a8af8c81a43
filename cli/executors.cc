#include "cli/executors.h"

#include <CLI/CLI.hpp>

#include "stages/integer_executor.h"
#include "stages/paced_executor.h"
#include "stages/torch_executor.h"

namespace shoal {

void add_compute_options(CLI::App& command, ComputeOptions& options) {
  command.add_option("--device", options.device, "auto, cpu or cuda:N (default: auto)");
  command.add_option("--threads", options.threads, "threads of the CPU (default: all)")->check(CLI::Range(1, 1024));
}

ExecutorFactory executor_factory(const ExecutorSection& section, const ComputeOptions& options) {
  using Made = Result<std::unique_ptr<StageExecutor>>;
  switch (section.kind) {
    case ExecutorKind::kTorch:
      return [options](const StageSpec& spec) { return make_torch_executor(spec, options.device, options.threads); };
    case ExecutorKind::kInteger:
      return [](const StageSpec& spec) -> Made { return {std::make_unique<IntegerExecutor>(spec)}; };
    case ExecutorKind::kPaced: {
      const Pace pace{.forward = from_seconds(section.forward_ms / 1e3),
                      .backward = from_seconds(section.backward_ms / 1e3)};
      return [pace, floats = (section.state_mib << 20) / sizeof(float)](const StageSpec& spec) -> Made {
        return {std::make_unique<PacedExecutor>(spec, pace, wait_asleep(), floats)};
      };
    }
  }
  return {};
}

}  // namespace shoal
