#include "runtime/peer/pause_plan.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr int at(int hour, int minute = 0) { return 60 * hour + minute; }

LendHours hours(const std::string& text) {
  auto parsed = LendHours::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return *std::move(parsed);
}

TEST(LendHoursTest, ASpanHoldsItsBeginAndNotItsEndAlsoOverMidnight) {
  const LendHours night = hours("22-8"), day = hours("9:30-12,14-18:15"), evening = hours("20-24"),
                  early = hours("24-6");
  for (const int minute : {at(22), at(23, 59), at(0), at(7, 59)}) EXPECT_TRUE(night.hold(minute)) << minute;
  for (const int minute : {at(8), at(12), at(21, 59)}) EXPECT_FALSE(night.hold(minute)) << minute;
  for (const int minute : {at(9, 30), at(11, 59), at(14), at(18, 14)}) EXPECT_TRUE(day.hold(minute)) << minute;
  for (const int minute : {at(9, 29), at(12), at(13, 59), at(18, 15)}) EXPECT_FALSE(day.hold(minute)) << minute;
  EXPECT_TRUE(evening.hold(at(23, 59)));
  EXPECT_FALSE(evening.hold(at(0)));
  EXPECT_TRUE(early.hold(at(0)));
  EXPECT_FALSE(early.hold(at(6)));
}

TEST(LendHoursTest, WhatIsNoSpanIsRefusedByName) {
  for (const std::string text : {"", "22", "22-", "-8", "8-8", "0-24", "25-3", "22:5-8", "22:60-8", "24:01-3", "22-8,",
                                 "22-8;9-10", "a-b", "+1-2", "22 -8", "22-8-9"}) {
    const auto parsed = LendHours::parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.code(), ErrorCode::kInput);
    EXPECT_NE(parsed.error().message.find("HINT"), std::string::npos);
  }
}

TEST(PausePlanTest, WithoutHoursItServesUntilItsOwnerSaysOtherwise) {
  PausePlan plan({});
  EXPECT_EQ(plan.look(at(12), ""), std::nullopt);
  plan.owner_pauses();
  EXPECT_EQ(plan.look(at(12), ""), "by its owner");
  EXPECT_EQ(plan.look(at(13), ""), "by its owner");
  plan.owner_resumes();
  EXPECT_EQ(plan.look(at(13), ""), std::nullopt);
}

TEST(PausePlanTest, OutsideItsHoursItPausesAndAPauseOfItsOwnerOutlastsThem) {
  PausePlan plan(hours("22-8"));
  EXPECT_EQ(plan.look(at(23), ""), std::nullopt);
  EXPECT_EQ(plan.look(at(8), ""), "outside the hours 22-8");
  plan.owner_pauses();
  EXPECT_EQ(plan.look(at(23), ""), "by its owner");
}

TEST(PausePlanTest, AResumeOutsideTheHoursHoldsUntilTheyBeginAndEndAgain) {
  PausePlan plan(hours("22-8"));
  EXPECT_TRUE(plan.look(at(12), "").has_value());
  plan.owner_resumes();
  EXPECT_EQ(plan.look(at(12), ""), std::nullopt);
  EXPECT_EQ(plan.look(at(21, 59), ""), std::nullopt);
  EXPECT_EQ(plan.look(at(22), ""), std::nullopt);
  EXPECT_TRUE(plan.look(at(8), "").has_value());
}

TEST(PausePlanTest, AGpuThatSomebodyElseUsesIsGivenUpUntilItIsFree) {
  PausePlan plan({});
  EXPECT_EQ(plan.look(at(12), "another program computes on cuda:0"), "another program computes on cuda:0");
  plan.owner_resumes();
  EXPECT_EQ(plan.look(at(12), "another program computes on cuda:0"), std::nullopt);
  EXPECT_EQ(plan.look(at(12), ""), std::nullopt);
  EXPECT_TRUE(plan.look(at(12), "another program computes on cuda:0").has_value());
}

}  // namespace
}  // namespace shoal
