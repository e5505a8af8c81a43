#pragma once
// The worlds of the contest, and those that are read from files: lines between regions, and machines that come and go.
#include <optional>
#include <string>
#include <vector>

#include "bench/routing_world.h"
#include "common/result.h"

namespace shoal {

std::vector<RoutingWorld> routing_worlds();

// A sender in every other region that the file names (layout/link_table.h), and a peer in each of the rest.
// ERRORS: kMissing, kInput.
Result<RoutingWorld> world_of_lines(const std::string& path);

// Machines come and go as in the file (bench/swarm_trace.h), faster. ERRORS: those of read_trace().
Result<RoutingWorld> world_of_trace(const std::string& path);

}  // namespace shoal
