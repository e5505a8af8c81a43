// What an entry does when claims, links, frames or gradients are lost while it is on its way.
#include "ledger_rig.h"

namespace shoal {
namespace {

using namespace naming;
using S = EntryState;

TEST(LedgerLossTest, AnEntryDoomedDuringItsForwardEndsWhenThatIsDone) {
  LedgerRig rig;
  const EntrySerial entry = rig.accept(2, 0);
  const auto job = rig.ledger.next_job(false);
  ASSERT_EQ(job->kind, JobKind::kForward);
  rig.release(2, 0);
  EXPECT_EQ(rig.state(entry), S::kEnding) << "the device has it";
  EXPECT_FALSE(rig.forward(3, 0));
  EXPECT_TRUE(rig.told_busy(3, BusyReason::kCrowded));
  rig.ledger.on_lows({{kTrainer, 1}});
  rig.ledger.tick(rig.now + 100s);
  rig.finish(*job);
  EXPECT_EQ(rig.state(entry), std::nullopt);
  EXPECT_EQ(rig.work_all(), std::vector{JobKind::kRelease});
  EXPECT_EQ(rig.dropped, std::set{entry});
}

TEST(LedgerLossTest, AnEntryDoomedDuringItsBackwardIsUndoneWhenThatIsDone) {
  LedgerRig rig;
  const EntrySerial entry = rig.accept(2, 0);
  rig.work();
  const auto job = rig.ledger.next_job(false);
  ASSERT_EQ(job->kind, JobKind::kBackward);
  rig.release(2, 0);
  rig.ledger.on_take(session(3), Take{id(0), lease(3, 1), rig.own(entry), {}}, rig.now);
  EXPECT_EQ(rig.take_sent<Gone>(3).size(), 1u);
  rig.finish(*job);
  EXPECT_EQ(rig.state(entry), S::kUndoing);
  EXPECT_TRUE(rig.take_sent<Gradient>(2).empty());
  EXPECT_EQ(rig.work_all(), std::vector{JobKind::kUndo});
  EXPECT_TRUE(rig.ledger.quiet());
}

TEST(LedgerLossTest, AGradientIsSentAgainOnlyIfTheLinkThatCarriedItIsGone) {
  LedgerRig rig;
  rig.count(2, 0);
  EXPECT_EQ(rig.take_sent<Gradient>(2).size(), 1u);
  rig.renew(2, 0, true);
  EXPECT_TRUE(rig.take_sent<Gradient>(2).empty()) << "it is on its way";
  rig.ledger.on_link_down(session(2), rig.now);
  rig.renew(2, 0, false);
  EXPECT_TRUE(rig.take_sent<Gradient>(2).empty()) << "not wanted any more";
  rig.ledger.on_link_down(session(2), rig.now);
  rig.renew(2, 0, true);
  EXPECT_EQ(rig.take_sent<Gradient>(2).size(), 1u);
}

// Without this a holder with one replica waited for ever: the gradient was made while no link stood, and none was lost
// afterwards.
TEST(LedgerLossTest, AGradientThatCouldNotBeSentAtAllIsSentWhenItsHolderRenews) {
  LedgerRig rig;
  rig.accept(2, 0);
  rig.link_up = false;
  rig.work_all();
  rig.link_up = true;
  rig.renew(2, 0, true);
  EXPECT_EQ(rig.take_sent<Gradient>(2).size(), 1u);
}

TEST(LedgerLossTest, AnOrphanTellsTheHolderAboveItsHolder) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  rig.now += 1500ms;
  rig.ledger.tick(rig.now);
  EXPECT_TRUE(rig.take_sent<Waiting>(1).empty()) << "0.4 L is 1.6 s";
  rig.now += 200ms;
  rig.ledger.tick(rig.now);
  rig.ledger.tick(rig.now);
  const auto told = rig.take_sent<Waiting>(1);
  ASSERT_EQ(told.size(), 1u) << "once in L/6";
  EXPECT_EQ(told[0].entry_name, rig.own(entry));
  EXPECT_EQ(told[0].silent, session(2));
  rig.now += 1s;
  rig.ledger.tick(rig.now);
  EXPECT_EQ(rig.take_sent<Waiting>(1).size(), 1u);
}

TEST(LedgerLossTest, ALostLinkMakesAnOrphanAtOnceUnlessAnotherClaimStands) {
  LedgerRig rig;
  rig.count(2, 0);
  rig.count(2, 1);
  rig.forward(3, 1);
  rig.ledger.on_link_down(session(2), rig.now);
  const auto told = rig.take_sent<Waiting>(1);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].microbatch, id(0));
}

TEST(LedgerLossTest, FramesThatWillNotComeEndTheEntryAndTellItsHolders) {
  LedgerRig rig;
  const auto entry = rig.forward(2, 0);
  rig.forward(3, 0);
  (void)rig.take_sent<Have>(3);
  rig.ledger.on_link_down(session(2), rig.now);
  EXPECT_EQ(rig.state(*entry), std::nullopt);
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kFailed));
  EXPECT_TRUE(rig.told_busy(3, BusyReason::kFailed));
  rig.ledger.inputs_arrived(*entry, rig.now);
  EXPECT_FALSE(rig.work() && rig.work());
  EXPECT_TRUE(rig.ledger.quiet());
}

TEST(LedgerLossTest, FramesThatAreWaitedForInVainAreRefusedAndTheirHolderHearsIt) {
  LedgerRig rig;
  const auto entry = rig.forward(2, 0);
  const TimePoint end = rig.now + Arrivals::kUnknown + 1s;
  while (rig.now < end) {
    rig.renew(2, 0);
    rig.ledger.tick(rig.now += 500ms);
  }
  EXPECT_EQ(rig.state(*entry), std::nullopt);
  EXPECT_EQ(rig.refused, std::vector{rig.transfer});
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kFailed));
}

TEST(LedgerLossTest, ARefusedGradientPutsTheEntryBackToWaiting) {
  LedgerRig rig(0, 2);
  const EntrySerial entry = rig.accept(1, 0);
  rig.work();
  rig.ledger.gradient_arrived(id(0), rig.gradient_from_below(0, {entry_name(60, 1)}));
  ASSERT_EQ(rig.ledger.next_job(false)->kind, JobKind::kBackward);
  rig.ledger.gradient_rejected(entry);
  EXPECT_EQ(rig.state(entry), S::kBelow);
  EXPECT_TRUE(rig.windows.empty()) << "its place in the window is free again";
  rig.ledger.gradient_arrived(id(0), rig.gradient_from_below(0, {entry_name(61, 1)}));
  EXPECT_EQ(rig.work()->kind, JobKind::kBackward);
  EXPECT_EQ(rig.take_sent<Gradient>(1).at(0).path.back(), entry_name(61, 1));
}

TEST(LedgerLossTest, AnEvaluationIsForwardOnlyAndCountsNothing) {
  LedgerRig rig;
  Forward message;
  message.microbatch = id(0);
  message.kind = ForwardKind::kEvaluate;
  message.lease = lease(1, 1);
  message.above = {session(1)};
  const auto entry = rig.ledger.on_forward(session(1), message, 1, rig.now);
  rig.ledger.inputs_arrived(*entry, rig.now);
  EXPECT_EQ(rig.work_all(), std::vector{JobKind::kEvaluate});
  const auto answer = rig.take_sent<Gradient>(1);
  ASSERT_EQ(answer.size(), 1u);
  EXPECT_TRUE(answer[0].path.empty());
  EXPECT_EQ(answer[0].loss_sum, 2.0);
  EXPECT_TRUE(rig.ledger.quiet());
}

TEST(LedgerLossTest, ProgressTellsEachHolderWhereItsEntriesStand) {
  LedgerRig rig(0, 2);
  rig.forward(1, 0);
  const EntrySerial below = rig.accept(1, 1);
  rig.work();
  EXPECT_EQ(rig.state(below), S::kBelow);
  const auto items = rig.ledger.progress().at(session(1));
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].phase, HopPhase::kForward);
  EXPECT_EQ(items[1].phase, HopPhase::kBelow);
}

}  // namespace
}  // namespace shoal
