#pragma once
// A run file that a person goes on with. Pure; thread-safe.
#include <string>

#include "runtime/config/config.h"

namespace shoal {

// What differs from its default as a line, every other option commented out with its default, each with what it is.
// Digests are launch's to write and have no line. load_config() of it gives the same run.
std::string run_file_text(const RunConfig& config);

}  // namespace shoal
