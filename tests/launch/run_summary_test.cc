#include "runtime/launch/run_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(RunSummaryTest, ItsLinesFitBehindTheTimeOfDay) {
  RunSummary s;
  s.issued = s.committed = s.run_targets = 999'999'999'999;
  s.unfinished = s.lost = s.rounds = s.rounds_abandoned = s.faults = 999'999;
  s.loss_bound_microbatches = 262'144;
  s.loss_bound_targets = 999'999'999'999;
  s.validation_loss = 123.4567;
  s.validation_versions.assign(4, Version(99'999));
  s.delay = 12.3;
  s.reason = "all tokens are committed";
  for (const std::string& line : summary_lines(s, true, std::chrono::hours(1000))) EXPECT_LE(line.size(), 71u) << line;
}

TEST(RunSummaryTest, SaysWhetherTheRunIsOverAndWhatItCameTo) {
  RunSummary s;
  s.reason = "stopped by Ctrl-C";
  s.faults = 2;
  s.lost = 11;
  s.validation_loss = 2.4463;
  s.validation_versions = {Version(125), Version(111)};
  using ::testing::Contains;
  using ::testing::HasSubstr;
  EXPECT_EQ(summary_lines(s, true, 78s)[0], "the run is over (stopped by Ctrl-C)");
  EXPECT_EQ(summary_lines(s, false, 78s)[0], "the run stands before its end (stopped by Ctrl-C)");
  EXPECT_THAT(summary_lines(s, true, 78s), Contains("0 tokens in 0:01:18, faults 2"));
  EXPECT_THAT(summary_lines(s, true, 78s), Contains("(microbatch, stage) pairs lost: 11"));
  EXPECT_THAT(summary_lines(s, true, 78s), Contains("validation loss 2.4463 nats a target"));
  EXPECT_THAT(summary_lines(s, true, 78s), Contains(HasSubstr("versions 125, 111")));
}

}  // namespace
}  // namespace shoal
