// PROTOCOL.md, "Windows", and the steps made of them.
#include "router/windows.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr StepId kNoStep;

TEST(WindowsTest, OpensAtTheFirstEntryAndClosesAtTheInnerBatch) {
  Windows windows({.inner_batch = 10});
  EXPECT_TRUE(windows.empty());
  const auto slot = windows.room(kNoStep);
  ASSERT_TRUE(slot);
  windows.add(*slot, 1, 4, 0);
  EXPECT_FALSE(windows.at(*slot)->closed);
  EXPECT_EQ(windows.room(kNoStep), slot);
  windows.add(*slot, 2, 6, 0);
  EXPECT_TRUE(windows.at(*slot)->closed);
  EXPECT_EQ(windows.at(*slot)->targets(), 10u);
}

TEST(WindowsTest, AWindowKeepsWhatTheRunHadCommittedWhenItClosed) {
  Windows windows({.inner_batch = 10});
  windows.note_run(700);
  const WindowSlot first = *windows.room(kNoStep);
  windows.add(first, 1, 10, 0);
  windows.note_run(900);
  windows.note_run(800);  // late news
  const WindowSlot second = *windows.room(kNoStep);
  windows.add(second, 2, 3, 0);
  windows.flush();
  windows.note_run(1000);
  windows.flush();
  for (const EntrySerial serial : {1u, 2u}) windows.settle(serial);
  EXPECT_EQ(windows.at(first)->run_targets, 700u);
  EXPECT_EQ(windows.at(second)->run_targets, 900u);
}

TEST(WindowsTest, AThirdWindowMustWait) {
  Windows windows({.inner_batch = 1});
  for (const EntrySerial serial : {1u, 2u}) windows.add(*windows.room(kNoStep), serial, 1, 0);
  EXPECT_FALSE(windows.has_room(kNoStep));
  EXPECT_EQ(windows.room(kNoStep), std::nullopt);
  windows.settle(1);
  ASSERT_NE(windows.ready(), nullptr);
  windows.note_step(windows.ready()->slot, 1);
  EXPECT_TRUE(windows.has_room(kNoStep));
}

TEST(WindowsTest, AClosedWindowNeverReopensAndAnUndoMakesItSmaller) {
  Windows windows({.inner_batch = 2});
  const WindowSlot first = *windows.room(kNoStep);
  windows.add(first, 1, 1, 0);
  windows.add(first, 2, 1, 0);
  windows.remove(2);
  EXPECT_NE(*windows.room(kNoStep), first);
  windows.settle(1);
  ASSERT_NE(windows.ready(), nullptr);
  EXPECT_EQ(windows.ready()->targets(), 1u);
}

TEST(WindowsTest, AnEmptiedWindowIsGoneWhetherOpenOrClosed) {
  Windows windows({.inner_batch = 2});
  windows.add(*windows.room(kNoStep), 1, 1, 0);
  EXPECT_TRUE(windows.alone(1));
  windows.remove(1);
  EXPECT_TRUE(windows.empty());
  const WindowSlot slot = *windows.room(kNoStep);
  windows.add(slot, 2, 1, 0);
  windows.add(slot, 3, 1, 0);
  EXPECT_FALSE(windows.alone(2));
  windows.remove(2);
  windows.remove(3);
  EXPECT_TRUE(windows.empty());
}

TEST(WindowsTest, StepsOnlyTheOldestAndOnlyWhenAllItsEntriesAreSettled) {
  Windows windows({.inner_batch = 1});
  const WindowSlot old = *windows.room(kNoStep);
  windows.add(old, 1, 1, 0);
  const WindowSlot young = *windows.room(kNoStep);
  windows.add(young, 2, 1, 0);
  windows.settle(2);
  EXPECT_EQ(windows.ready(), nullptr) << "the younger one is settled, the older is not";
  windows.settle(1);
  ASSERT_NE(windows.ready(), nullptr);
  EXPECT_EQ(windows.ready()->slot, old);
  windows.note_step(old, 1);
  EXPECT_EQ(windows.ready()->slot, young) << "settled entries hold no buffer";
}

TEST(WindowsTest, WaitsForUnsettledEntriesMadeAtTheWeightsThatWouldBeOverwritten) {
  Windows windows({.inner_batch = 1});
  for (const EntrySerial serial : {1u, 2u}) windows.add(*windows.room(kNoStep), serial, 1, 0);
  windows.wrote(8);
  windows.set_stamp(2, 7);
  windows.settle(1);
  EXPECT_EQ(windows.unsettled_at_other(), 1u);
  EXPECT_EQ(windows.ready(), nullptr);
  windows.settle(2);
  EXPECT_EQ(windows.unsettled_at_other(), 0u);
  EXPECT_NE(windows.ready(), nullptr);
}

TEST(WindowsTest, FlushClosesInnerWindowsAndDropsEmptyOnes) {
  Windows windows({.inner_batch = 100});
  (void)windows.room(kNoStep);
  windows.flush();
  EXPECT_TRUE(windows.empty());
  const WindowSlot slot = *windows.room(kNoStep);
  windows.add(slot, 1, 1, 0);
  windows.flush();
  EXPECT_TRUE(windows.at(slot)->closed);
}

TEST(WindowsTest, AReplicaThatIsAskedSeldomHoldsNoEntryForManyRounds) {
  Windows windows({.inner_batch = 100});
  const WindowSlot slot = *windows.room(kNoStep);
  windows.add(slot, 1, 1, 0);
  windows.settle(1);
  for (std::uint32_t round = 1; round < Windows::kRoundsOpen; ++round) windows.note_round();
  EXPECT_EQ(windows.ready(), nullptr);
  windows.note_round();
  ASSERT_NE(windows.ready(), nullptr);
  EXPECT_EQ(windows.ready()->slot, slot);
  const WindowSlot step = *Windows({.inner_batch = 1}).room(StepId(3));
  Windows steps({.inner_batch = 1});
  (void)steps.room(StepId(3));
  steps.add(step, 1, 1, 0);
  for (std::uint32_t round = 0; round < Windows::kRoundsOpen; ++round) steps.note_round();
  EXPECT_FALSE(steps.step_window(StepId(3))->closed) << "its step closes it";
}

TEST(WindowsTest, AStepHasTheSlotOfItsParityAndIsConsumedByARound) {
  Windows windows({.inner_batch = 1});
  const WindowSlot odd = *windows.room(StepId(3)), even = *windows.room(StepId(4));
  EXPECT_EQ(odd, WindowSlot::kB);
  EXPECT_EQ(even, WindowSlot::kA);
  windows.add(odd, 1, 50, 0);
  EXPECT_FALSE(windows.step_window(StepId(3))->closed) << "targets close no step";
  EXPECT_FALSE(windows.has_room(StepId(5))) << "its slot is taken by step 3";
  windows.settle(1);
  windows.close_step(StepId(3));
  EXPECT_TRUE(windows.step_window(StepId(3))->closed);
  EXPECT_EQ(windows.ready(), nullptr) << "a step steps with its round only";
  EXPECT_FALSE(windows.has_room(StepId(3)));
  windows.flush();
  EXPECT_FALSE(windows.at(even)->closed);
  windows.pop_step(StepId(3));
  EXPECT_EQ(windows.room(StepId(5)), WindowSlot::kB);
  EXPECT_EQ(windows.step_window(StepId(3)), nullptr);
}

}  // namespace
}  // namespace shoal
