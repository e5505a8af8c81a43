// PROTOCOL.md, "Windows", through the ledger: what rounds secure, and the steps of the rule allreduce.
#include "common/rng.h"
#include "ledger_rig.h"

namespace shoal {
namespace {

using namespace naming;
using S = EntryState;

TEST(LedgerWindowTest, TheInnerStepWaitsForEveryEntryOfItsWindow) {
  LedgerRig rig(1, 2, 2);
  const EntrySerial a = rig.count(2, 0), b = rig.count(2, 1);
  EXPECT_FALSE(rig.work());
  rig.commit(0, {rig.own(a)});
  EXPECT_EQ(rig.work_all(), std::vector{JobKind::kRelease});
  EXPECT_EQ(rig.settled, std::set{a});
  rig.release(2, 1);
  EXPECT_EQ(rig.work_all(), (std::vector{JobKind::kUndo, JobKind::kInnerStep})) << "an undo makes the window smaller";
  EXPECT_EQ(rig.state(b), std::nullopt);
  EXPECT_EQ(rig.windows.stepped(), std::vector{a});
  EXPECT_EQ(rig.windows.stepped_targets(), 1u);
}

TEST(LedgerWindowTest, TheSumOfSteppedTargetsIsThatOfTheSteppedEntriesWhateverComes) {
  LedgerRig rig(1, 2, 2, 8);
  Rng rng(7);
  for (std::uint64_t serial = 0; serial < 400; ++serial) {
    const EntrySerial entry = rig.accept(2, serial);
    rig.work_all();
    if (rig.state(entry) == S::kQueued || rng.chance(0.2))
      rig.release(2, serial);
    else
      rig.commit(serial, {rig.own(entry)});
    rig.work_all();
    if (rng.chance(0.1)) {  // a round names some of them, and one that it named before
      std::vector<EntrySerial> named = rig.windows.stepped();
      named.resize(rng.below(named.size() + 1));
      rig.ledger.secure(named);
      rig.ledger.secure(named);
    }
    ASSERT_EQ(rig.windows.stepped_targets(), rig.windows.stepped().size()) << "one target an entry";
  }
  EXPECT_GT(rig.windows.steps_made(), 50u);
  rig.ledger.secure(rig.windows.stepped());
  EXPECT_EQ(rig.windows.stepped_targets(), 0u);
}

TEST(LedgerWindowTest, AThirdWindowWaits) {
  LedgerRig rig(1, 2, 1);
  const EntrySerial a = rig.count(2, 0);
  rig.count(2, 1);
  const EntrySerial c = rig.accept(2, 2);
  EXPECT_EQ(rig.work_all(), std::vector{JobKind::kForward});
  EXPECT_EQ(rig.state(c), S::kQueued);
  EXPECT_FALSE(rig.work());
  EXPECT_EQ(rig.ledger.progress().at(session(2)).back().phase, HopPhase::kBelow)
      << "it waits for commits: no deadline runs";
  rig.commit(0, {rig.own(a)});
  EXPECT_EQ(rig.work_all(), (std::vector{JobKind::kRelease, JobKind::kInnerStep, JobKind::kBackward}));
  EXPECT_EQ(rig.state(c), S::kCounted);
}

TEST(LedgerWindowTest, TheStepWaitsForUnsettledEntriesOfTheOtherWindowMadeAtTheOldWeights) {
  LedgerRig rig(1, 2, 1);
  const EntrySerial a = rig.count(2, 0), b = rig.count(2, 1);
  rig.commit(0, {rig.own(a)});
  EXPECT_EQ(rig.work_all(), (std::vector{JobKind::kRelease, JobKind::kInnerStep}))
      << "b was made at the same stamp: its buffer stays";
  const EntrySerial c = rig.count(2, 2);
  rig.commit(2, {rig.own(c)});
  EXPECT_EQ(rig.work_all(), std::vector{JobKind::kRelease}) << "b, at the stamp before, is the oldest and not settled";
  rig.commit(1, {rig.own(b)});
  EXPECT_EQ(rig.work_all(), (std::vector{JobKind::kRelease, JobKind::kInnerStep, JobKind::kInnerStep}));
}

TEST(LedgerWindowTest, JobsComeInThisOrder) {
  LedgerRig rig(1, 2, 1);
  rig.count(2, 0);
  const EntrySerial b = rig.count(2, 1);
  rig.accept(2, 2);
  rig.work();  // its forward; the backward has no room
  rig.accept(2, 3);
  rig.release(2, 0);
  rig.commit(1, {rig.own(b)});
  EXPECT_EQ(rig.work_all(), (std::vector{JobKind::kRelease, JobKind::kUndo, JobKind::kInnerStep, JobKind::kBackward,
                                         JobKind::kForward, JobKind::kBackward}));
}

TEST(LedgerWindowTest, NothingIsWrittenWhileTheParametersAreNotItsOwn) {
  LedgerRig rig(1, 2, 1);
  const EntrySerial a = rig.count(2, 0);
  rig.commit(0, {rig.own(a)});
  ASSERT_EQ(rig.work()->kind, JobKind::kRelease);
  EXPECT_EQ(rig.ledger.next_job(true, false), std::nullopt);
  EXPECT_EQ(rig.ledger.next_job(true)->kind, JobKind::kInnerStep);
}

TEST(LedgerWindowTest, AShiftAloneIsWrittenWhenNoWindowIsOpen) {
  LedgerRig rig(1, 2, 2);
  rig.count(2, 0);
  EXPECT_EQ(rig.ledger.next_job(true), std::nullopt);
  rig.release(2, 0);
  rig.work_all();
  EXPECT_EQ(rig.ledger.next_job(true)->kind, JobKind::kApplyShift)
      << "an open window that was emptied holds nothing up";
}

TEST(LedgerWindowTest, FlushClosesAnOpenWindow) {
  LedgerRig rig(1, 2, 100);
  const EntrySerial a = rig.count(2, 0);
  rig.commit(0, {rig.own(a)});
  EXPECT_EQ(rig.work_all(), std::vector{JobKind::kRelease});
  rig.windows.flush();
  EXPECT_EQ(rig.work_all(), std::vector{JobKind::kInnerStep});
}

// ---- rule allreduce ----

Step step_of(std::uint64_t step, std::vector<CommitItem> winners) {
  Step message;
  message.step = StepId(step);
  message.winners = std::move(winners);
  return message;
}

// Paths of a STEP name all stages; this peer is stage 1 of 2.
CommitItem won(std::uint64_t serial, const EntryName& here) { return {id(serial), {entry_name(70, serial), here}}; }

TEST(LedgerWindowTest, StepSettlesItsWinnersAndUndoesTheRest) {
  LedgerRig rig;
  const StepId one(1);
  const EntrySerial winner = rig.count(2, 0, one), loser = rig.count(2, 1, one), later = rig.count(2, 2, StepId(2));
  EXPECT_FALSE(rig.ledger.step_ready(one));
  rig.ledger.on_step(step_of(1, {won(0, rig.own(winner)), won(1, entry_name(60, 4))}));
  EXPECT_EQ(rig.state(winner), S::kCommitted);
  EXPECT_EQ(rig.state(loser), S::kUndoing);
  EXPECT_EQ(rig.state(later), S::kCounted);
  EXPECT_FALSE(rig.ledger.step_ready(one)) << "the undo must be done first";
  EXPECT_EQ(rig.work_all(), (std::vector{JobKind::kRelease, JobKind::kUndo})) << "no inner step: the round steps";
  EXPECT_TRUE(rig.ledger.step_ready(one));
  ASSERT_NE(rig.windows.step_window(one), nullptr);
  EXPECT_EQ(rig.windows.step_window(one)->entries.size(), 1u);
  rig.ledger.secure({winner});
  rig.windows.pop_step(one);
  EXPECT_EQ(rig.windows.step_window(one), nullptr);
  EXPECT_FALSE(rig.ledger.step_ready(one));
}

TEST(LedgerWindowTest, StepWhileItsEntriesAreOnTheDeviceWaitsForThem) {
  LedgerRig rig;
  const EntrySerial entry = rig.accept(2, 0, StepId(1)), young = rig.accept(2, 1, StepId(1));
  rig.work();
  const auto job = rig.ledger.next_job(false);
  ASSERT_EQ(job->kind, JobKind::kBackward);
  ASSERT_EQ(job->serial, entry);
  rig.ledger.on_step(step_of(1, {won(0, entry_name(60, 1)), won(1, entry_name(60, 2))}));
  EXPECT_EQ(rig.state(entry), S::kEnding);
  EXPECT_EQ(rig.state(young), std::nullopt);
  EXPECT_FALSE(rig.ledger.step_ready(StepId(1)));
  rig.finish(*job);
  EXPECT_FALSE(rig.ledger.step_ready(StepId(1))) << "it is in the window until it is undone";
  rig.work_all();
  EXPECT_TRUE(rig.ledger.step_ready(StepId(1)));
  EXPECT_EQ(rig.windows.step_window(StepId(1)), nullptr);
}

// A late branch of a merged step used to open a window of it in the slot that step + 2 needs, and nothing ever took
// that window away.
TEST(LedgerWindowTest, ALateForwardOfAnAnnouncedOrMergedStepIsClosed) {
  LedgerRig rig;
  rig.ledger.on_step(step_of(1, {won(0, entry_name(60, 1))}));
  EXPECT_FALSE(rig.forward(2, 0, 5, {}, StepId(1)));
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kClosed));
  rig.windows.pop_step(StepId(1));
  EXPECT_FALSE(rig.forward(2, 0, 6, {}, StepId(1)));
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kClosed));
  rig.ledger.on_step(step_of(1, {won(0, entry_name(60, 1))}));
  EXPECT_FALSE(rig.ledger.step_ready(StepId(1))) << "a repeat of what is merged";
  rig.count(2, 9, StepId(3));
  EXPECT_NE(rig.windows.step_window(StepId(3)), nullptr);
}

// A COMMIT of a round may be overtaken by a forward that was issued because of it: it comes over another connection.
TEST(LedgerWindowTest, InModeDrainAForwardWaitsUntilTheStepBeforeIsMergedHere) {
  LedgerRig rig(1, 2, 1, 4, true);
  rig.windows.start_behind(StepId(6));
  const EntrySerial now = rig.count(2, 0, StepId(7));
  const EntrySerial early = rig.accept(2, 1, StepId(8));
  EXPECT_EQ(rig.ledger.next_job(false), std::nullopt) << "it would be computed at the weights of step 6";
  rig.ledger.on_step(step_of(7, {won(0, rig.own(now))}));
  rig.work_all();
  EXPECT_EQ(rig.state(early), S::kReady);
  rig.ledger.secure({now});
  rig.windows.pop_step(StepId(7));
  rig.work_all();
  EXPECT_EQ(rig.state(early), S::kCounted);
}

TEST(LedgerWindowTest, ElseAForwardOfTheNextStepIsComputedAtOnce) {
  LedgerRig rig;
  rig.count(2, 0, StepId(1));
  rig.count(2, 1, StepId(2));
}

// A step may be made long after its window closed; its learning rate follows the close.
TEST(LedgerWindowTest, AnInnerStepTakesTheRunsTargetsOfTheClose) {
  LedgerRig rig;
  rig.windows.note_run(500);
  const EntrySerial entry = rig.count(2, 0);
  rig.windows.note_run(9000);
  rig.commit(0, {rig.own(entry)});
  std::optional<Job> step;
  while (const auto job = rig.work())
    if (job->kind == JobKind::kInnerStep) step = job;
  ASSERT_TRUE(step);
  EXPECT_EQ(step->run_targets, 500u);
}

TEST(LedgerWindowTest, AnAbandonedBranchLeavesNoWindowBehind) {
  LedgerRig rig;
  rig.count(2, 0, StepId(1));
  rig.release(2, 0);
  rig.work_all();
  rig.count(2, 7, StepId(3));  // the same slot
  EXPECT_NE(rig.windows.step_window(StepId(3)), nullptr);
}

}  // namespace
}  // namespace shoal
