#pragma once
// The event files of a whole swarm under faults, by file name, and what the simulator knows of the same life.
#include <map>
#include <string>

#include "sim/scenario.h"

namespace shoal::test {

struct Evidence {
  std::map<std::string, std::string> files;
  ScenarioResult life;
};

inline Evidence faulted_evidence(RuleId rule, std::uint64_t seed, std::uint16_t stages, std::uint64_t microbatches,
                                 std::uint64_t delay_max = 0, EventLevel level = EventLevel::kFull) {
  Evidence evidence;
  SwarmOptions options;
  options.seed = seed;
  options.stages = stages;
  options.config = small_config(rule, stages, microbatches);
  options.config.optimizer.delay_max = delay_max;
  options.round_budget = rule == RuleId::kDiloco ? 600ms : 30s;
  options.evidence = &evidence.files;
  options.evidence_level = level;
  FaultOptions faults;
  faults.only = {FaultKind::kKill, FaultKind::kFreeze, FaultKind::kCut, FaultKind::kLaunchKill,
                 FaultKind::kLaunchPower};
  faults.mean_between = 1s;
  evidence.life = run_scenario(std::move(options), faults);
  return evidence;
}

}  // namespace shoal::test
