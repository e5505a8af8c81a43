#pragma once
// Which executor a run's [executor] section means on this machine.
#include <algorithm>
#include <string>
#include <thread>

#include "runtime/config/config.h"
#include "stages/executor.h"

namespace CLI {
class App;
}

namespace shoal {

struct ComputeOptions {
  std::string device = "auto";                                                        // auto, cpu, cuda, cuda:N
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));  // of the CPU, for the process
};

// --device and --threads.
void add_compute_options(CLI::App& command, ComputeOptions& options);
// The factory's errors: choose_device's, kTooLarge.
ExecutorFactory executor_factory(const ExecutorSection& section, const ComputeOptions& options);

}  // namespace shoal
