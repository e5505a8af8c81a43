// The audit over the event files of whole swarms under faults: what the product writes is clean, whatever its host
// does.
#include <gtest/gtest.h>

#include "events/audit/audit.h"
#include "sim/scenario.h"

namespace shoal {
namespace {

using Setting = std::tuple<RuleId, std::uint64_t>;

class AuditSeedsTest : public testing::TestWithParam<Setting> {};

TEST_P(AuditSeedsTest, FindsAFaultedSwarmClean) {
  const auto [rule, seed] = GetParam();
  std::map<std::string, std::string> files;
  SwarmOptions options;
  options.seed = seed;
  options.config = small_config(rule, options.stages, 200);
  options.round_budget = rule == RuleId::kDiloco ? 600ms : 30s;
  options.evidence = &files;
  FaultOptions faults;
  faults.only = {FaultKind::kKill, FaultKind::kFreeze, FaultKind::kCut, FaultKind::kLaunchKill,
                 FaultKind::kLaunchPower};
  faults.mean_between = 1s;
  const ScenarioResult life = run_scenario(std::move(options), faults);
  const AuditReport report = audit_texts(files);
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_GE(life.committed, report.committed);  // of its lines some may be repeats
  EXPECT_GE(life.lost, report.lost);
}

INSTANTIATE_TEST_SUITE_P(Faults, AuditSeedsTest,
                         testing::Combine(testing::Values(RuleId::kDiloco, RuleId::kAllreduce),
                                          testing::Range<std::uint64_t>(1, 6)));

}  // namespace
}  // namespace shoal
