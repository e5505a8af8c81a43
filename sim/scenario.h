#pragma once
// A life of a swarm from one seed: the faults of a plan strike it while it trains, then they end, a core is healed, and
// it must go on and come to its end. What sim/checkers.h says of any time is judged after every fault and every quarter
// of a second; the first broken rule ends the life.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/fault_plan.h"
#include "sim/swarm.h"

namespace shoal {

struct ScenarioResult {
  std::vector<std::string> broken;  // checkers' lines; empty = all rules hold
  std::uint64_t trace = 0;
  std::map<std::string, std::uint64_t> fault_kinds;  // what struck
  std::map<std::string, std::uint64_t> error_codes;  // what the processes were told or ended with
  std::uint64_t faults = 0;                          // in all
  std::uint64_t behind = 0;                          // commits that a member had to follow
  std::uint64_t restores = 0;                        // stages that went back to an earlier version
  std::uint64_t takeovers = 0;                       // of the launching process, by one that waited for it
  std::uint64_t asked_to_move = 0;                   // peers, each time that one was
  std::uint64_t moves = 0;                           // of those, sessions that served where they were wanted
  std::uint64_t lives_with_moves = 0;                // 1 where there was one
  std::uint64_t shifts_anchor = 0,
                shifts_snapshot = 0;      // sessions that caught up, without and with own work in the missed round
  std::uint64_t joined = 0, carried = 0;  // by the relay: pairs, and bytes of them
  std::uint64_t branches = 0, undos = 0, gone = 0, lost = 0, committed = 0;
  std::uint64_t looks = 0;             // times that the counting was judged
  std::uint64_t last_copies_lost = 0;  // runs that could only be parked: a stage's newest version died with its holder
  double virtual_seconds = 0;
  std::vector<std::string> story;  // for people, when something broke

  void add(const ScenarioResult& other);  // figures and maps
};

// The run ends by itself or, when it is longer than its faults, once it showed that it goes on (sim/liveness.h).
ScenarioResult run_scenario(SwarmOptions options, const FaultOptions& faults, Duration limit = 900s);

// One credit a peer, and windows of one microbatch: everything waits for everything.
void make_tight(SwarmOptions& options);
// Peers write checkpoints, and nothing spares the last holder of a version.
void keep_checkpoints(SwarmOptions& options);
// The logs of the launching process are compacted again and again.
void compact_often(SwarmOptions& options);

// What a seed of shoal-sim is besides, by what divides it: tight; activations sent as differences; the validation loss
// estimated behind every step; gradients dropped that are more than one inner step late; checkpoints; logs compacted.
inline constexpr std::uint64_t kTightEvery = 4, kDeltasEvery = 3, kEstimatesEvery = 5, kDelayMaxEvery = 7,
                               kCheckpointsEvery = 6, kCompactEvery = 2;
void be_as_seed_draws(SwarmOptions& options);

}  // namespace shoal
