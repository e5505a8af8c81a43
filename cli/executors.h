#pragma once
// Which executor a run's [executor] section means on this machine.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "common/program/options.h"
#include "runtime/config/config.h"
#include "stages/executor.h"

namespace shoal {

struct ComputeOptions {
  std::string device = "auto";                                                        // auto, cpu, cuda, cuda:N
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));  // of the CPU, for the process
  bool forward_only = false;                                                          // nothing is trained
};

inline constexpr const char* kDevices = "auto, cpu or cuda:N (default: auto)";
// --device, which may be one of `devices`, and --threads.
void add_compute_options(Command& command, ComputeOptions& options, const char* devices = kDevices);
// Whether the parameters of `specs` fit in what this machine has left now, each `copies` times, the base of adapters
// once, and `more_bytes`: said by name, before the tensor library is asked for them. What a GPU holds is its driver's
// to say. ERRORS: kTooLarge, choose_device's.
Status check_memory(const std::string& what, std::span<const StageSpec> specs, std::uint64_t copies,
                    const ComputeOptions& options, std::uint64_t more_bytes = 0);
// Bytes that this process may come to on `device`, as choose_device names it, as things stand now, with what it has
// already; none: not known. On a GPU the first call takes seconds.
std::optional<std::uint64_t> memory_left(const std::string& device);
inline constexpr std::uint64_t kCopiesInTraining = 4;  // at least: parameters, both moments, an accumulator
// The factory's errors: check_memory's, the executor's.
ExecutorFactory executor_factory(const RunConfig& config, const ComputeOptions& options);

}  // namespace shoal
