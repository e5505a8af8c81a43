// How late the gradients of a window are: steps between the first forward and the step that uses it.
#include "ledger_rig.h"

namespace shoal {
namespace {

using namespace naming;
using Counts = std::vector<std::uint64_t>;

Counts delays_of(const LedgerRig& rig, WindowSlot slot) {
  const DelayHistogram histogram = rig.windows.delays(slot);
  return {histogram.counts().begin(), histogram.counts().end()};
}

TEST(LedgerDelayTest, AStepBetweenForwardAndStepMakesAGradientLate) {
  LedgerRig rig(1, 2, 1);
  const EntrySerial a = rig.count(2, 0), b = rig.count(2, 1);  // one window each
  EXPECT_EQ(delays_of(rig, WindowSlot::kA), Counts{1});
  EXPECT_EQ(delays_of(rig, WindowSlot::kB), Counts{1});
  rig.commit(0, {rig.own(a)});
  rig.work_all();
  EXPECT_EQ(delays_of(rig, WindowSlot::kB), (Counts{0, 1})) << "a's step was made since b's forward";
  rig.windows.wrote(++rig.stamp);
  EXPECT_EQ(delays_of(rig, WindowSlot::kB), (Counts{0, 1})) << "a shift is no step";
  rig.commit(1, {rig.own(b)});
  EXPECT_TRUE(delays_of(rig, WindowSlot::kA).empty()) << "its window is gone";
}

// The entry of microbatch 0, whose gradient comes from the next stage after three steps were made here.
EntrySerial three_steps_late(LedgerRig& rig) {
  const EntrySerial old = rig.accept(2, 0);
  rig.work_all();
  for (std::uint64_t serial = 1; serial < 4; ++serial) {
    const EntrySerial other = rig.accept(2, serial);
    rig.work_all();
    rig.ledger.gradient_arrived(id(serial), rig.gradient_from_below(serial, {entry_name(70, serial)}));
    rig.work_all();
    rig.commit(serial, {rig.own(other), entry_name(70, serial)});
    rig.work_all();
  }
  EXPECT_EQ(rig.windows.steps_made(), 3u);
  rig.ledger.gradient_arrived(id(0), rig.gradient_from_below(0, {entry_name(70, 9)}));
  return old;
}

TEST(LedgerDelayTest, AGraphThatIsComputedAgainKeepsTheStepOfItsFirstForward) {
  LedgerRig rig(1, 3, 1);  // not the last stage: gradients come from below
  const EntrySerial old = three_steps_late(rig);
  const auto job = rig.ledger.next_job(false);
  ASSERT_TRUE(job && job->kind == JobKind::kBackward && job->serial == old);
  rig.ledger.backward_done(old, true, rig.stamp, true, 10);
  EXPECT_EQ(rig.ledger.counters().recomputed, 1u);
  EXPECT_EQ(delays_of(rig, job->slot), (Counts{0, 0, 0, 1}));
}

class LateGradientTest : public testing::Test {
 protected:
  // At the bound: not too late.
  static constexpr std::uint64_t kAllowed = 3;
  static LedgerRig rig_with(std::uint64_t delay_max) { return LedgerRig(1, 3, 1, 4, false, delay_max); }
  static std::vector<CommitState> answers(LedgerRig& rig) {
    std::vector<CommitState> states;
    for (const CommitAck& ack : rig.take_sent<CommitAck>(1))
      for (const CommitAckItem& item : ack.items)
        if (item.microbatch == id(0)) states.push_back(item.state);
    return states;
  }
};

TEST_F(LateGradientTest, IsTakenUpToTheBound) {
  LedgerRig rig = rig_with(kAllowed);
  three_steps_late(rig);
  const auto job = rig.work();
  ASSERT_TRUE(job && job->kind == JobKind::kBackward);
  EXPECT_FALSE(job->late);
  EXPECT_FALSE(rig.windows.empty());
}

TEST_F(LateGradientTest, IsJudgedByTheStepThatItsWindowWouldMake) {
  LedgerRig rig = rig_with(kAllowed);
  rig.accept(2, 9);
  rig.work_all();
  const EntrySerial old = three_steps_late(rig);
  rig.ledger.gradient_arrived(id(9), rig.gradient_from_below(9, {entry_name(70, 10)}));
  auto job = rig.work();
  ASSERT_TRUE(job && job->kind == JobKind::kBackward);
  EXPECT_FALSE(job->late) << "the next step";
  job = rig.work();
  ASSERT_TRUE(job && job->kind == JobKind::kBackward && job->serial == old);
  EXPECT_TRUE(job->late) << "the one behind that";
}

TEST_F(LateGradientTest, IsHandedOnAndInNoWindowBeyondIt) {
  LedgerRig rig = rig_with(kAllowed - 1);
  const EntrySerial old = three_steps_late(rig);
  rig.take_sent<Gradient>(2);
  const auto job = rig.work();
  ASSERT_TRUE(job && job->kind == JobKind::kBackward && job->serial == old);
  EXPECT_TRUE(job->late);
  EXPECT_TRUE(rig.windows.empty());
  EXPECT_EQ(rig.take_sent<Gradient>(2).size(), 1u) << "the stages before have use for it";
  EXPECT_EQ(rig.written[EventKind::kLate], 1u);
  EXPECT_EQ(rig.ledger.counters().counted, 3u) << "not this one";
}

TEST_F(LateGradientTest, IsAnsweredDroppedEachTimeAndForgottenBelowTheLowWaterMark) {
  LedgerRig rig = rig_with(kAllowed - 1);
  const EntrySerial old = three_steps_late(rig);
  rig.work_all();
  rig.take_sent<CommitAck>(1);
  for (int i = 0; i < 2; ++i) rig.commit(0, {rig.own(old), entry_name(70, 9)});
  EXPECT_EQ(answers(rig), (std::vector{CommitState::kDropped, CommitState::kDropped}));
  EXPECT_TRUE(rig.work_all().empty()) << "the executor knows it no more, and no step is due";
  rig.ledger.on_lows({{id(0).trainer, 1}});
  EXPECT_EQ(rig.ledger.entries().find(old), nullptr);
}

TEST_F(LateGradientTest, EndsWithItsClaimAndIsNotTakenOutOfAnything) {
  LedgerRig rig = rig_with(kAllowed - 1);
  const EntrySerial old = three_steps_late(rig);
  rig.work_all();
  rig.release(2, 0);
  EXPECT_EQ(rig.ledger.entries().find(old), nullptr);
  EXPECT_EQ(rig.ledger.counters().undone, 0u);
}

TEST(LedgerDelayTest, AStepThatARoundMadeCounts) {
  LedgerRig rig;
  const EntrySerial a = rig.count(2, 0, StepId(1));
  rig.count(2, 1, StepId(2));
  Step one;
  one.step = StepId(1);
  one.winners = {{id(0), {entry_name(70, 0), rig.own(a)}}};
  rig.ledger.on_step(one);
  rig.work_all();
  EXPECT_EQ(delays_of(rig, rig.windows.step_window(StepId(1))->slot), Counts{1});
  rig.ledger.secure({a});
  rig.windows.pop_step(StepId(1));
  EXPECT_EQ(delays_of(rig, rig.windows.step_window(StepId(2))->slot), (Counts{0, 1}));
  rig.windows.pop_step(StepId(1));  // said again
  EXPECT_EQ(delays_of(rig, rig.windows.step_window(StepId(2))->slot), (Counts{0, 1}));
}

TEST(LedgerDelayTest, TheSettleWaitRunsFromTheCloseToTheLastCommitOrUndo) {
  for (const bool undone : {false, true}) {
    LedgerRig rig(1, 2, 2);
    rig.windows.note_time(at(10ms));
    const EntrySerial a = rig.count(2, 0);
    rig.windows.note_time(at(20ms));
    const EntrySerial b = rig.count(2, 1);  // closes the window
    rig.windows.note_time(at(25ms));
    rig.commit(0, {rig.own(a)});
    EXPECT_EQ(rig.windows.at(WindowSlot::kA)->settle_wait_ms(), 0u) << "b is open";
    rig.windows.note_time(at(51ms));
    if (undone) {
      rig.release(2, 1);
      EXPECT_EQ(rig.work()->kind, JobKind::kRelease);
      EXPECT_EQ(rig.work()->kind, JobKind::kUndo);
    } else {
      rig.commit(1, {rig.own(b)});
    }
    rig.windows.note_time(at(80ms));
    EXPECT_EQ(rig.windows.at(WindowSlot::kA)->settle_wait_ms(), 31u);
  }
}

}  // namespace
}  // namespace shoal
