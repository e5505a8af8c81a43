#include "runtime/launch/loss_lines.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kLossBegin = TimePoint{} + 100s;

CommitBook::Listing listing(std::uint64_t session, std::uint64_t serial, const std::string& cause) {
  return {.microbatch = {7, serial}, .stage = StageId(1), .entry_name = {Session{session, 1}, serial}, .cause = cause};
}

TEST(LossLinesTest, ASessionsLossesAreOneLineWithTheirNumber) {
  LossLines lines;
  for (std::uint64_t serial = 0; serial < 1344; ++serial) lines.add(listing(serial % 9, serial, "silent for 10.0 s"));
  const auto told = lines.take(kLossBegin);
  ASSERT_EQ(told.size(), 9u);
  EXPECT_NE(told[0].find("lost: 150 microbatches of session "), std::string::npos) << told[0];
  EXPECT_NE(told[0].find(" at stage 1 (silent for 10.0 s)"), std::string::npos) << told[0];
  EXPECT_TRUE(lines.take(kLossBegin + std::chrono::hours(1)).empty());
}

TEST(LossLinesTest, WhatTricklesInIsSummedForAPeriod) {
  LossLines lines;
  std::size_t told = 0;
  for (int second = 0; second < 60; ++second) {
    lines.add(listing(1, static_cast<std::uint64_t>(second), "too late"));
    told += lines.take(kLossBegin + std::chrono::seconds(second)).size();
  }
  EXPECT_EQ(told, 6u);
  const auto rest = lines.take_rest();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_NE(rest[0].find("lost: 9 microbatches"), std::string::npos) << rest[0];
  EXPECT_TRUE(lines.take_rest().empty());
}

TEST(LossLinesTest, CausesAndSessionsAreToldApart) {
  LossLines lines;
  lines.add(listing(1, 1, "too late"));
  lines.add(listing(1, 2, "the run ended"));
  lines.add(listing(2, 3, "the run ended"));
  const auto told = lines.take(kLossBegin);
  ASSERT_EQ(told.size(), 3u);
  for (const std::string& line : told) EXPECT_NE(line.find("lost: 1 microbatch of"), std::string::npos) << line;
}

}  // namespace
}  // namespace shoal
