#pragma once
// What must hold of a swarm in virtual time, judged from the events all processes wrote and from the arenas of the
// living. Pure look: nothing is changed.
#include <string>
#include <vector>

#include "sim/swarm.h"

namespace shoal {

// Every broken rule as one line; empty = all hold. At any time:
//   - a microbatch is logged once; a token is secured by one committed round at most; nothing is both secured and
//   listed;
//   - for every stage, tags: anchor of the newest version held by a living replica = sum over what committed rounds
//   named;
//   - the same with the exact gradients of the integer executor, float by float;
//   - living, serving replicas of one version hold the same anchor.
std::vector<std::string> check_counting(const Swarm& swarm);
// After the end besides: every committed (microbatch, stage) is secured or listed; nothing is unfinished.
std::vector<std::string> check_end(const Swarm& swarm);

}  // namespace shoal
