#pragma once
// The run's file in the folder of a launching process, by which --resume finds the run again: the manifest, and where
// the text is on this machine. Pure; thread-safe.
#include <string>

#include "runtime/config/config.h"

namespace shoal {

std::string kept_run_text(const std::string& manifest, const RunConfig& config);

// What launch itself writes into the manifest of a new run, where a RUN.toml that resumes it leaves it out.
void take_names(RunConfig& config, const RunConfig& kept);

}  // namespace shoal
