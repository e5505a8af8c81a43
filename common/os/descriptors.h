#pragma once
// How many descriptors (sockets, files) this process may have open at a time: RLIMIT_NOFILE. Most systems begin with
// 1024, of which a swarm's connections need more, and allow far more to a process that asks. Thread: any.
#include <cstdint>

#include "common/result.h"

namespace shoal {

// Below that a launching process or a peer is short of them: it is said at the start.
inline constexpr std::uint64_t kDescriptorsWanted = 4096;

std::uint64_t descriptors_max();
// Raises the soft limit to the hard one. ERRORS: kIo: it stays as it is; kUnsupported: it is raised, and still below
// kDescriptorsWanted. Both say what that costs and what to do.
Status raise_descriptors_max();

}  // namespace shoal
