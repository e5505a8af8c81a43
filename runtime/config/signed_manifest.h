#pragma once
// A run's manifest as it comes over a link. Pure; thread-safe.
#include "runtime/config/config.h"
#include "transport/messages_connection.h"

namespace shoal {

// ERRORS: kCorrupt (no signature, or not the run key's), and parse_manifest's.
Result<RunConfig> open_manifest(const Manifest& manifest, const RunId& run);

}  // namespace shoal
