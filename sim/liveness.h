#pragma once
// Whether a swarm whose faults ended goes on, and which part waits for which when it does not.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/swarm.h"

namespace shoal {

// After the faults ended and a core was healed, so many microbatches commit within so long.
inline constexpr std::uint64_t kLiveMicrobatches = 10;
inline constexpr Duration kLiveWithin = 60s;
// Only while each stage has a peer that can be dialled, or the run's relay lives: a stage without either is expected to
// serve nobody. None: there is no such stage, or nothing was said of reach (SwarmReach::unreachable).
std::optional<StageId> stage_out_of_reach(const Swarm& swarm);

// One line for everybody who waits: the launching process (its window, stages without a server), rounds that are open
// and the members that were not heard in them, every peer, its live entries and its claims at others. What waits stands
// first, then "waits for", then whom and why. Pure look.
std::vector<std::string> waits_for_graph(const Swarm& swarm);

}  // namespace shoal
