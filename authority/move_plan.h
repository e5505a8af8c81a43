#pragma once
// Which member should serve another stage. Pure functions of a snapshot of the swarm: no I/O, no clock, no state.
// Thread: any.
//
// A run makes as many microbatches a second as its weakest stage: R = min over stages k of r_k, where r_k is the sum of
// speed / work over those that serve k. SWARM (Ryabinin et al. 2023, algorithm 2) moves, each period, one peer from the
// stage with the shortest queues to the one with the longest. Here the moves that follow are foreseen, and one is made
// only where R rises by them. Nothing of R is lost while a mover is away: it comes from where R is not made.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace shoal {

struct StageLoad {
  StageId stage;
  double work = 1;      // of a microbatch's forward and backward there, > 0; in any unit, the same for all stages
  bool reached = true;  // one that comes can get its state: somebody serves it, or it never secured a round
  bool closed = false;  // somebody is on the way to it or from it: nobody else is moved there, nor away
};

struct Worker {
  Session session;
  PeerId peer;
  StageId stage;
  std::optional<double> speed;  // work a second; none: not measured yet, as fast as the others are in the mean
  bool movable = false;         // it serves, its owner named no stage, and it may be asked again
  bool direct = true;           // others can dial it
};

struct MoveOptions {
  Duration horizon = std::chrono::minutes(10);  // for so long things are taken to stay as they are
  Duration away = 30s;                          // from its last microbatch there to its first one here
  double gain_min = 0.05;                       // of R, at least, when all is done: less is within what is measured
};

struct PlannedMove {
  Session session;
  PeerId peer;
  StageId from, to;
  double rate_now = 0;    // R, in microbatches a second
  double rate_then = 0;   // behind this move and those that follow
  std::size_t moves = 1;  // that lead there, this one among them
};

// No word of a worker on its speed counts for more than kBelieved times the median of all.
inline constexpr double kBelieved = 4;
void bound_speeds(std::span<Worker> workers);

// r_k by stage, in microbatches a second. What is not measured counts as the mean, or as 1 where nothing is.
std::vector<double> stage_rates(std::span<const StageLoad> stages, std::span<const Worker> workers);

// The first move of the best sequence: each goes to the weakest stage that can be reached, from where it is missed
// least, as long as the sorted rates become larger; of its beginnings the one that gains most over the horizon, of
// which its moves take their time, one after the other. None: no sequence brings gain_min within it. A stage is not
// left with fewer than kMembersFirst (planner.h) nor ever with nobody, unless the other one has still fewer; nor
// without a member that can be dialled; one that cannot goes only where another can, or nobody is: two such never meet.
// Bounds: kMovesAhead moves looked ahead, each of O(workers x stages log stages).
inline constexpr std::size_t kMovesAhead = 8;
std::optional<PlannedMove> plan_move(std::span<const StageLoad> stages, std::span<const Worker> workers,
                                     const MoveOptions& options);

}  // namespace shoal
