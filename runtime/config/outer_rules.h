#pragma once
// The outer rules as a run's [sync] means them. Executors of whole numbers take rules that keep them whole, so that the
// anchor itself proves what was counted. Pure. Thread: any.
#include "runtime/config/config.h"
#include "sync/outer_rule.h"

namespace shoal {

OuterRules outer_rules_of(const RunConfig& config);

}  // namespace shoal
