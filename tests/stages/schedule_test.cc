#include "stages/schedule.h"

#include <gtest/gtest.h>

#include <limits>

namespace shoal {
namespace {

const Schedule kSchedule{1e-3, 1e-4, 100, 1100};

TEST(ScheduleTest, WarmsUpLinearlyFromTheFinalRate) {
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 0), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 50), 5.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 100), 1e-3);
}

TEST(ScheduleTest, FollowsHalfACosineAndStaysAtTheFinalRate) {
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 600), 5.5e-4);
  EXPECT_NEAR(learning_rate(kSchedule, 350), 1e-4 + 9e-4 * 0.5 * (1 + 0.70710678118654752), 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 1100), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, std::numeric_limits<std::uint64_t>::max()), 1e-4);
}

TEST(ScheduleTest, NeverRisesAfterTheWarmUp) {
  double before = learning_rate(kSchedule, 100);
  for (std::uint64_t tokens = 101; tokens <= 1200; ++tokens) {
    const double now = learning_rate(kSchedule, tokens);
    EXPECT_LE(now, before);
    before = now;
  }
}

TEST(ScheduleTest, WithoutWarmUpItStartsAtThePeak) { EXPECT_DOUBLE_EQ(learning_rate({1e-3, 0, 0, 10}, 0), 1e-3); }

TEST(ScheduleTest, RefusesWhatCannotBe) {
  EXPECT_TRUE(check_schedule(kSchedule).ok());
  for (const Schedule& bad :
       {Schedule{0, 0, 0, 10}, Schedule{1e-3, 2e-3, 0, 10}, Schedule{1e-3, -1, 0, 10}, Schedule{1e-3, 0, 0, 0},
        Schedule{1e-3, 0, 11, 10}, Schedule{std::numeric_limits<double>::quiet_NaN(), 0, 0, 10}}) {
    EXPECT_EQ(check_schedule(bad).code(), ErrorCode::kInput);
  }
}

}  // namespace
}  // namespace shoal
