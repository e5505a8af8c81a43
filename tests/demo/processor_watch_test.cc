#include "demo/processor_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <thread>

namespace shoal {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Key;

ProcessorShare second(double from, double others, double idle) {
  return {.from = from, .to = from + 1, .others = others, .idle = idle};
}

TEST(BusySpanTest, ASecondIsBusyWhenOthersTakeMoreThanATenthAndNothingIsLeft) {
  const std::vector<ProcessorShare> shares = {second(10, 0.5, 0), second(11, 0.09, 0), second(12, 0.5, 0.2)};
  const BusySpan span = busy_in(shares, 10, 13);
  EXPECT_EQ(span.seconds, 1);
  EXPECT_EQ(span.watched, 3);
  EXPECT_NEAR(span.others, (0.5 + 0.09 + 0.5) / 3, 1e-12);
}

TEST(BusySpanTest, AThirdOfTheTimeIsEnoughThatNobodyCanTell) {
  std::vector<ProcessorShare> shares;
  for (int i = 0; i < 30; ++i) shares.push_back(second(i, i < 10 ? 0.4 : 0.02, 0));
  EXPECT_TRUE(busy_in(shares, 0, 30).undecided());
  EXPECT_FALSE(busy_in(shares, 1, 30).undecided()) << "9 of 29 s";
}

TEST(BusySpanTest, ASwarmThatStandsStillOnAQuietMachineIsNoMatterOfTheMachine) {
  std::vector<ProcessorShare> shares;
  for (int i = 0; i < 30; ++i) shares.push_back(second(i, 0.3, 0.6));
  EXPECT_FALSE(busy_in(shares, 0, 30).undecided());
}

TEST(BusySpanTest, WithoutSamplesNothingIsUndecided) {
  EXPECT_FALSE(busy_in({}, 0, 30).undecided());
  EXPECT_FALSE(busy_in({second(40, 1, 0)}, 0, 30).undecided());
}

TEST(ProcTest, TheMachinesLineCountsWaitingForADiskAsIdleAndAnotherGuestAsOthers) {
  const auto ticks = parse_machine_ticks("cpu  100 20 30 400 50 1 2 40 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
  ASSERT_TRUE(ticks.has_value());
  EXPECT_EQ(ticks->all, 643u) << "guests are in the first figure already";
  EXPECT_EQ(ticks->idle, 450u);
}

TEST(ProcTest, LinesThatAreNoneAreRefused) {
  for (const char* text : {"", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 x 4 5 6 7 8"})
    EXPECT_FALSE(parse_machine_ticks(text).has_value()) << text;
  for (const char* text : {"", "12 (a", "12 (a) S 1 2", "12 (a) S x 0 0 0 0 0 0 0 0 0 7 8 0 0"})
    EXPECT_FALSE(parse_process_ticks(text).has_value()) << text;
}

TEST(ProcTest, AProgramsNameMayHoldBlanksAndBrackets) {
  const auto ticks = parse_process_ticks("12 (a ) b (c) S 7 0 0 0 0 0 0 0 0 0 30 4 0 0 20 0\n");
  ASSERT_TRUE(ticks.has_value());
  EXPECT_EQ(ticks->parent, 7);
  EXPECT_EQ(ticks->used, 34u);
}

TEST(ProcTest, AFamilyIsAllThatDescendsAndNobodyElse) {
  const std::map<pid_t, ProcessTicks> all = {{1, {0, 5}}, {20, {1, 5}}, {21, {20, 5}}, {22, {21, 5}}, {30, {1, 5}}};
  EXPECT_THAT(family_of(20, all), ElementsAre(Key(20), Key(21), Key(22)));
  EXPECT_THAT(family_of(99, all), ElementsAre());
  EXPECT_THAT(family_of(7, {{7, {7, 1}}}), ElementsAre(Key(7))) << "a circle ends";
}

// The work of this very process is its own, whoever else computes here.
TEST(ProcessorWatchTest, OwnWorkIsNotOthers) {
  ProcessorWatch watch;
  const auto begin = std::chrono::steady_clock::now();
  const auto now = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  watch.look(now());
  volatile double sum = 0;
  while (now() < 1.2) sum = sum + std::sqrt(2.0);
  watch.look(now());
  watch.look(now());
  ASSERT_EQ(watch.shares().size(), 1u) << "one a second";
  const ProcessorShare& share = watch.shares().front();
  EXPECT_GE(share.idle, 0);
  EXPECT_LT(share.others + share.idle, 1) << "what this process took is in neither";
  EXPECT_THAT(share.to - share.from, DoubleNear(1.2, 5));
}

}  // namespace
}  // namespace shoal
