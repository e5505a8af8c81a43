#include "cli/executors.h"

#include <cstdlib>

#include "common/os/resident_memory.h"
#include "kernels/device.h"
#include "stages/adapters.h"
#include "stages/integer_executor.h"
#include "stages/paced_executor.h"
#include "stages/torch_device.h"
#include "stages/torch_executor.h"

namespace shoal {

namespace {
constexpr std::uint64_t kCopiesOfAny = 2;  // what is computed on, and the anchor

// Bytes of `device`, as choose_device names it: all of a GPU, what this machine has left now; none: not known.
std::optional<std::uint64_t> device_memory(const std::string& device) {
  if (device == "cpu") {
    const std::uint64_t left = available_memory();
    return left > 0 ? std::optional(left) : std::nullopt;
  }
  const CudaReport report = probe_cuda();
  const auto index = static_cast<std::size_t>(std::atoi(device.c_str() + device.find(':') + 1));
  return index < report.devices.size() ? std::optional(report.devices[index].memory_bytes) : std::nullopt;
}

}  // namespace

void add_compute_options(Command& command, ComputeOptions& options, const char* devices) {
  command.add_option("--device", options.device, devices);
  command.add_option("--threads", options.threads, "threads of the CPU (default: all)").in(1, 1024);
}

Status check_memory(const std::string& what, std::span<const StageSpec> specs, std::uint64_t copies,
                    const ComputeOptions& options, std::uint64_t more_bytes) {
  SHOAL_ASSIGN(const std::string device, choose_device(options.device));
  const auto left = device == "cpu" ? device_memory(device) : std::nullopt;
  if (!left) return {};
  std::uint64_t parameters = 0;
  for (const StageSpec& spec : specs) {
    parameters += parameter_count(spec);
    if (has_adapters(spec.model)) more_bytes += parameter_count(base_of(spec)) * sizeof(float);
  }
  const std::uint64_t needed = copies * parameters * sizeof(float) + more_bytes;
  if (needed <= *left) return {};
  return make_error(ErrorCode::kTooLarge,
                    what + " has " + std::to_string(parameters / 1'000'000) + " M parameters, which need at least " +
                        std::to_string(needed >> 20) + " MiB; this machine has " + std::to_string(*left >> 20) +
                        " MiB left now. HINT: end other programs, raise this container's limit, lower [model] layers "
                        "or dim or [data] sequences, or raise [pipeline] stages and share them among more machines");
}

std::optional<std::uint64_t> memory_left(const std::string& device) {
  if (device != "cpu") {
    const auto left = device_memory_left(device);
    return left ? left : device_memory(device);
  }
  const auto left = device_memory(device);
  return left ? std::optional(*left + resident_memory().now) : std::nullopt;
}

ExecutorFactory executor_factory(const RunConfig& config, const ComputeOptions& options) {
  const ExecutorSection& section = config.executor;
  using Made = Result<std::unique_ptr<StageExecutor>>;
  switch (section.kind) {
    case ExecutorKind::kTorch:
      return [options, compute = config.compute](const StageSpec& spec) -> Made {
        const std::string name = "stage " + std::to_string(spec.stage.value);
        SHOAL_TRY(check_memory(name, {&spec, 1}, options.forward_only ? 1 : kCopiesOfAny, options));
        TorchOptions torch;
        torch.device = options.device;
        torch.threads = options.threads;
        torch.compute = compute.dtype;
        torch.recompute = compute.recompute;
        torch.forward_only = options.forward_only;
        SHOAL_ASSIGN(auto executor, make_torch_executor(spec, torch));
        return {std::move(executor)};
      };
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
