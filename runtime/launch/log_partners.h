#pragma once
// Whether the two logs of a run belong together. The trainer logs a path before any round can name its entries, and the
// record of a round says how many microbatches were logged by then: a trainer's log with fewer is older than its
// partner. The authority logs a round before the trainer marks its entries merged, and that mark says which versions it
// had heard of: an authority's log without one of them is older. A run that went on with either would train
// microbatches twice or lose them without a word. Pure.
#include <string>

#include "authority/authority_log.h"
#include "common/result.h"
#include "router/commit_book.h"

namespace shoal {

// `book`: as the trainer's log says it. The paths are for people. ERRORS: kCorrupt (the older one by name, and the
// remedy).
Status check_log_partners(const LogReach& authority, const CommitBook& book, const std::string& trainer_path,
                          const std::string& authority_path);

}  // namespace shoal
