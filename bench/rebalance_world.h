#pragma once
// A swarm that a trace takes apart, without microbatches: who serves which stage when, under a planner of moves. What
// is asked of the product is its own: choose_stage() places joiners, Moves and plan_move() move. Deterministic.
// Thread: one.
#include <cstdint>
#include <string>

#include "bench/swarm_trace.h"
#include "common/time.h"

namespace shoal {

enum class MovePlanner : std::uint8_t {
  kNone,  // nobody moves
  // SWARM (Ryabinin et al. 2023), algorithm 2: each period one peer, from the least loaded stage to the most. There are
  // no queues here: what waits at a stage is the longer the slower it is, and which of its peers has the shortest is
  // drawn.
  kSwarm,
  kShoal,  // authority/moves.h
};

struct RebalanceWorld {
  std::uint16_t stages = 4;
  double start_s = 30;  // from a join to the first microbatch: the state is fetched
  double away_s = 30;   // of a mover, from its last microbatch to its first one
  double spread = 0;    // sigma of the log of peers' speeds; 0: all alike
  std::uint64_t seed = 1;
  MovePlanner planner = MovePlanner::kShoal;
  Duration period = 300s;  // of kSwarm
  Duration horizon = std::chrono::minutes(10);
};

// Shares are of what the best assignment of those who are there would make meanwhile: whole peers where all are alike,
// else the sum of speeds over the stages, which none can pass. A joiner counts there from its join on.
struct RebalanceFigures {
  double mean_share = 0, first_hour = 0, last_hour = 0;
  double moves_per_peer_hour = 0;
  std::uint64_t moves = 0;
  double stood_share = 0;  // of the time in which all stages could have had somebody, one had nobody
};

RebalanceFigures run_rebalance(const SwarmTrace& trace, const RebalanceWorld& world);

}  // namespace shoal
