#pragma once
// What coarse codecs are known to cost of the loss, and what is said of a run that takes them. Pure; thread-safe.
//
// The figures come from tests outside of this project, which has not repeated them: int2 took 20 % of the loss, aq2
// forward with int2 backward 9 %, int4 0.8 %, int8 and aq4 nothing that was seen. They are of whole runs: what each
// direction has of them, and of a list of codecs each edge, nobody has told apart.
#include <optional>
#include <string>

#include "runtime/config/config.h"

namespace shoal {

// Which of the dear codecs is chosen, what was seen of it, and the lines that avoid it. None: no edge has one, or the
// executor learns nothing.
std::optional<std::string> codec_warning(const RunConfig& config);

}  // namespace shoal
