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

// What a level leaves out is a gap at worst.
TEST_P(AuditSeedsTest, FindsNoViolationAtAnyLevel) {
  const auto [rule, seed] = GetParam();
  std::size_t bytes_before = 0;
  for (const EventLevel level : kEventLevels) {
    const test::Evidence evidence = test::faulted_evidence(rule, seed, 3, 200, seed % 2, level);
    const AuditReport report = audit_texts(evidence.files);
    const auto wanted = level == EventLevel::kRounds ? AuditVerdict::kIncomplete : AuditVerdict::kClean;
    EXPECT_EQ(report.verdict(), wanted) << name_of(level) << "\n" << audit_table(report);
    EXPECT_EQ(report.incomplete_count, level == EventLevel::kRounds ? 1u : 0u) << "one line says it";
    EXPECT_GT(report.secured, 0u) << name_of(level);
    EXPECT_GT(report.stages.at(0).anchors, 0u) << name_of(level);
    std::size_t bytes = 0;
    for (const auto& [name, text] : evidence.files) bytes += text.size();
    EXPECT_GT(bytes, bytes_before) << "each level adds lines to the one before";
    bytes_before = bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, AuditSeedsTest,
                         testing::Combine(testing::Values(RuleId::kDiloco, RuleId::kAllreduce),
                                          testing::Range<std::uint64_t>(1, 6)));

}  // namespace
}  // namespace shoal
