#pragma once
// Whether a swarm whose faults ended goes on, and which part waits for which when it does not.
#include <cstdint>
#include <string>
#include <vector>

#include "sim/swarm.h"

namespace shoal {

// After the faults ended and a core was healed, so many microbatches commit within so long.
inline constexpr std::uint64_t kLiveMicrobatches = 10;
inline constexpr Duration kLiveWithin = 60s;

// One line for everybody who waits: the launching process (its window, stages without a server), rounds that are open
// and the members that were not heard in them, every peer, its live entries and its claims at others. What waits stands
// first, then "waits for", then whom and why. Pure look.
std::vector<std::string> waits_for_graph(const Swarm& swarm);

}  // namespace shoal
