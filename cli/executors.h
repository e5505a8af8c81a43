#pragma once
// Which executor a run's [executor] section means on this machine.
#include <string>

#include "runtime/config/config.h"
#include "stages/executor.h"

namespace shoal {

struct ComputeOptions {
  std::string device = "auto";  // auto, cpu, cuda, cuda:N
  int threads = 1;              // of the CPU, for the process
};

// The factory's errors: choose_device's, kTooLarge.
ExecutorFactory executor_factory(const ExecutorSection& section, const ComputeOptions& options);

}  // namespace shoal
