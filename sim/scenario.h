#pragma once
// A random life of a swarm from one seed: kills, restarts, freezes, cut links, death and return of the launching
// process, while it trains to the end. No kill takes the last living holder of a stage's newest anchor. What
// sim/checkers.h says of any time is judged after every fault and every quarter of a second; the first broken rule ends
// the life.
#include <cstdint>
#include <string>
#include <vector>

#include "sim/swarm.h"

namespace shoal {

struct FaultMix {
  double kills = 0.3, freezes = 0.3, cuts = 0.3, launch_kills = 0.1, partitions = 0;  // shares of the faults
  Duration mean_between = 3s;
  Duration last_after = 40s;  // no new faults after this, so that the run can end
};

struct ScenarioResult {
  std::vector<std::string> broken;  // checkers' lines; empty = all rules hold
  std::uint64_t trace = 0;
  std::uint64_t kills = 0, freezes = 0, cuts = 0, launch_kills = 0, partitions = 0;
  std::uint64_t behind = 0;  // commits that a member had to follow
  std::uint64_t shifts_anchor = 0,
                shifts_snapshot = 0;  // sessions that caught up, without and with own work in the missed round
  std::uint64_t branches = 0, undos = 0, gone = 0, lost = 0, committed = 0;
  std::uint64_t looks = 0;  // times that the counting was judged
  double virtual_seconds = 0;
  std::vector<std::string> story;  // for people, when something broke
};

ScenarioResult run_scenario(SwarmOptions options, const FaultMix& mix, Duration limit = 900s);

}  // namespace shoal
