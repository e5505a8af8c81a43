#pragma once
// What coarse codecs cost of the loss, and what is said of a run that takes them. Pure; thread-safe.
//
// The figures are those of `bench/grid convergence` (docs/RESULTS.md): one model of four stages, trained from nothing,
// whole percents of its validation loss over three seeds. Larger models and more stages have not been measured.
#include <optional>
#include <string>

#include "runtime/config/config.h"

namespace shoal {

// Which of the dear codecs is chosen, what was seen of it, and what avoids it. None: no edge has one, or the executor
// learns nothing.
std::optional<std::string> codec_warning(const RunConfig& config);

}  // namespace shoal
