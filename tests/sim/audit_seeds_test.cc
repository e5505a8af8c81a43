// The audit over the event files of whole swarms under faults: what the product writes is clean, whatever its host
// does.
#include <gtest/gtest.h>

#include "events/audit/audit.h"
#include "tests/sim/evidence.h"

namespace shoal {
namespace {

using Setting = std::tuple<RuleId, std::uint64_t>;

class AuditSeedsTest : public testing::TestWithParam<Setting> {};

TEST_P(AuditSeedsTest, FindsAFaultedSwarmClean) {
  const auto [rule, seed] = GetParam();
  const std::uint64_t delay_max = seed % 2;
  const test::Evidence evidence = test::faulted_evidence(rule, seed, 3, 200, delay_max);
  const AuditReport report = audit_texts(evidence.files);
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_GE(evidence.life.committed, report.committed);  // of its lines some may be repeats
  EXPECT_GE(evidence.life.lost, report.lost);
}

INSTANTIATE_TEST_SUITE_P(Faults, AuditSeedsTest,
                         testing::Combine(testing::Values(RuleId::kDiloco, RuleId::kAllreduce),
                                          testing::Range<std::uint64_t>(1, 6)));

}  // namespace
}  // namespace shoal
