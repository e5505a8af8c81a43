#include "runtime/launch/run_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/config/config.h"

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
  s.elapsed_s = 3.6e6;
  s.reason = "all tokens are committed";
  for (const std::string& line : summary_lines(s, true)) EXPECT_LE(line.size(), 71u) << line;
}

TEST(RunSummaryTest, SaysWhetherTheRunIsOverAndWhatItCameTo) {
  RunSummary s;
  s.reason = "stopped by Ctrl-C";
  s.faults = 2;
  s.elapsed_s = 78;
  s.lost = 11;
  s.validation_loss = 2.4463;
  s.validation_versions = {Version(125), Version(111)};
  using ::testing::Contains;
  using ::testing::HasSubstr;
  EXPECT_EQ(summary_lines(s, true)[0], "the run is over (stopped by Ctrl-C)");
  EXPECT_EQ(summary_lines(s, false)[0], "the run stands before its end (stopped by Ctrl-C)");
  EXPECT_THAT(summary_lines(s, true), Contains("0 tokens in 0:01:18, faults 2"));
  EXPECT_THAT(summary_lines(s, true), Contains("(microbatch, stage) pairs lost: 11"));
  EXPECT_THAT(summary_lines(s, true), Contains("validation loss 2.4463 nats a target"));
  EXPECT_THAT(summary_lines(s, true), Contains(HasSubstr("versions 125, 111")));
}

TEST(RunSummaryTest, EachFigureOfASummaryIsInItsObject) {
  RunSummary s;
  s.run_targets = 4096;
  s.validation_versions = {Version(7)};
  s.shares = {{.peer_tag = 1, .stage = StageId(0), .microbatches = 3}};
  RunConfig config;
  config.run.name = "tide pool";
  const auto json = nlohmann::json::parse(summary_json(s, config, true, ""));
  for (const LaunchFigure& row : launch_figures())
    if (row.places.summary != nullptr) {
      EXPECT_TRUE(json.contains(row.places.summary)) << row.places.summary;
    }
  EXPECT_EQ(json["run"], "tide pool");
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["tokens"], 4096);
  EXPECT_EQ(json["val_loss"], nullptr) << "nothing was validated";
  EXPECT_EQ(json["val_versions"], nlohmann::json({7}));
  EXPECT_EQ(json["shares"][0]["tokens"], 3 * config.targets_per_microbatch());
  EXPECT_EQ(json["model"], nullptr) << "nothing was saved";
}

}  // namespace
}  // namespace shoal
