// PROTOCOL.md, "An entry, at its peer", row by row: claims, joins, undo, COMMIT, low-water. What fails on the way:
// ledger_loss_test.cc. Holders are sessions 2, 3, ...; the trainer is 1.
#include "ledger_rig.h"

namespace shoal {
namespace {

using namespace naming;
using S = EntryState;

TEST(LedgerTest, AForwardBelowLowOrOfAClosedMicrobatchIsAnsweredClosed) {
  LedgerRig rig;
  rig.ledger.on_lows({{kTrainer, 5}});
  EXPECT_FALSE(rig.forward(2, 4));
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kClosed));
  EXPECT_EQ(rig.refused, std::vector{rig.transfer});
  rig.commit(6, {entry_name(60, 1)});  // committed at another replica
  EXPECT_FALSE(rig.forward(2, 6));
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kClosed));
  rig.count(2, 7);
  rig.commit(7, {rig.own(1)});
  EXPECT_FALSE(rig.forward(3, 7));
  EXPECT_TRUE(rig.told_busy(3, BusyReason::kClosed));
  EXPECT_TRUE(rig.forward(2, 5));
}

TEST(LedgerTest, WithoutCreditItIsBusyAndARecoveryHasCreditsOfItsOwn) {
  LedgerRig rig(1, 2, 1, 2);
  rig.accept(2, 0);
  rig.accept(2, 1);
  EXPECT_FALSE(rig.forward(2, 2));
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kNoCredit));
  EXPECT_TRUE(rig.forward(2, 2, 99, GradientHint{session(60), entry_name(60, 1)}));
  EXPECT_FALSE(rig.forward(2, 3, 98, GradientHint{session(60), entry_name(60, 2)}));
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kNoCredit));
  EXPECT_EQ(rig.ledger.entries().live(), 3u);
}

TEST(LedgerTest, TheWordOfAQueueCountsForwardAndBackwardApart) {
  for (const bool last : {true, false}) {
    LedgerRig rig(1, last ? 2 : 3, 100);
    const auto forward = [&](EntrySerial serial) {
      ForwardResult result = rig.forwarded();
      result.took_us = 10'000;
      rig.ledger.forward_done(serial, result, rig.now);
    };
    const EntrySerial first = rig.accept(2, 0);
    EXPECT_EQ(rig.ledger.queue_ms(), 0u) << "nothing is known of jobs";
    ASSERT_EQ(rig.ledger.next_job(false)->kind, JobKind::kForward);
    forward(first);
    EXPECT_EQ(rig.ledger.queue_ms(), 0u);
    if (!last) rig.ledger.gradient_arrived(id(0), rig.gradient_from_below(0, {entry_name(60, 8)}));
    ASSERT_EQ(rig.ledger.next_job(false)->kind, JobKind::kBackward);
    rig.ledger.backward_done(first, true, rig.stamp, false, 30'000);
    EXPECT_EQ(rig.ledger.queue_ms(), 0u);
    const EntrySerial second = rig.accept(2, 1);
    rig.accept(2, 2);
    EXPECT_EQ(rig.ledger.queue_ms(), last ? 80u : 20u) << "a backward follows at once in the last stage alone";
    ASSERT_EQ(rig.ledger.next_job(false)->serial, second);
    forward(second);
    EXPECT_EQ(rig.ledger.queue_ms(), last ? 30u + 40u : 10u);
  }
}

TEST(LedgerTest, TakesNothingNewWhileItLeaves) {
  LedgerRig rig;
  rig.ledger.set_leaving(true);
  EXPECT_FALSE(rig.forward(2, 0));
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kLeaving));
}

TEST(LedgerTest, AForwardMakesAnEntryThatComputesWhenItsFramesAreHere) {
  LedgerRig rig(0, 2);
  const auto entry = rig.forward(1, 3);
  ASSERT_TRUE(entry);
  EXPECT_EQ(rig.state(*entry), S::kArriving);
  EXPECT_FALSE(rig.work());
  rig.ledger.inputs_arrived(*entry, rig.now);
  EXPECT_EQ(rig.work()->kind, JobKind::kForward);
  EXPECT_EQ(rig.state(*entry), S::kBelow);
  EXPECT_TRUE(rig.courier.hops().waiting(id(3)));
  rig.ledger.gradient_arrived(id(3), rig.gradient_from_below(3, {entry_name(60, 8)}));
  EXPECT_EQ(rig.state(*entry), S::kQueued);
  EXPECT_EQ(rig.work()->kind, JobKind::kBackward);
  EXPECT_EQ(rig.state(*entry), S::kCounted);
  const auto gradients = rig.take_sent<Gradient>(1);
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_EQ(gradients[0].path, (std::vector{rig.own(*entry), entry_name(60, 8)}));
  EXPECT_EQ(gradients[0].tags, (std::vector{PathTag(300 + *entry), PathTag(8)}))
      << "its own, and that of below as it came";
  EXPECT_EQ(gradients[0].loss_sum, 4);
}

TEST(LedgerTest, TheLastStageGoesFromForwardToBackwardByItself) {
  LedgerRig rig;
  const EntrySerial entry = rig.accept(2, 0);
  EXPECT_EQ(rig.work_all(), (std::vector{JobKind::kForward, JobKind::kBackward}));
  EXPECT_EQ(rig.state(entry), S::kCounted);
  EXPECT_EQ(rig.take_sent<Gradient>(2).at(0).loss_sum, 2.0);
  EXPECT_EQ(rig.courier.hops().size(), 0u);
}

TEST(LedgerTest, ASecondBranchJoinsInEveryLiveStateAndNothingIsComputedAgain) {
  for (const int steps : {0, 1, 2}) {  // ready, queued, counted
    LedgerRig rig;
    const EntrySerial entry = rig.accept(2, 0);
    for (int i = 0; i < steps; ++i) rig.work();
    (void)rig.take_sent<Gradient>(2);
    EXPECT_FALSE(rig.forward(3, 0));
    EXPECT_EQ(rig.take_sent<Have>(3).size(), 1u);
    EXPECT_EQ(rig.refused, std::vector{rig.transfer});
    EXPECT_EQ(rig.take_sent<Gradient>(3).size(), steps == 2 ? 1u : 0u) << "the gradient at once, if it is counted";
    rig.work_all();
    EXPECT_EQ(rig.written[EventKind::kForward], 1u);
    EXPECT_EQ(rig.ledger.counters().counted, 1u);
    EXPECT_EQ(rig.take_sent<Gradient>(2).size() + rig.take_sent<Gradient>(3).size(), steps == 2 ? 0u : 2u);
    EXPECT_EQ(rig.ledger.entries().find(entry)->above.back(), session(3)) << "the newer way";
  }
}

// What comes for a gradient that waits has no place of its own any more, either.
TEST(LedgerTest, WhereMemoryEndedHalfAsManyAreTaken) {
  EntryCredits credits(16, 4);
  EXPECT_EQ(credits.limit(false), 16u);
  EXPECT_EQ(credits.limit(true), 20u);
  EXPECT_EQ(credits.out_of_memory(5), 2u);
  EXPECT_EQ(credits.limit(true), 2u);
  EXPECT_EQ(credits.out_of_memory(4), std::nullopt) << "there are four yet";
  EXPECT_EQ(credits.out_of_memory(2), 1u);
  EXPECT_EQ(credits.out_of_memory(1), 0u);
  EXPECT_EQ(credits.limit(true), 1u);

  EntryCredits full(16, 4);
  EXPECT_EQ(full.out_of_memory(18), 9u) << "two of them came for gradients that wait: nothing was halved before";
}

TEST(LedgerTest, AJoinNeedsNoCreditAndAtMostFourClaimsStandOnOneEntry) {
  LedgerRig rig(1, 2, 1, 1);
  rig.accept(2, 0);
  for (const std::uint64_t tag : {3u, 4u, 5u}) EXPECT_FALSE(rig.forward(tag, 0));
  EXPECT_EQ(rig.written[EventKind::kJoined], 3u);
  EXPECT_FALSE(rig.forward(6, 0));
  EXPECT_TRUE(rig.told_busy(6, BusyReason::kCrowded));
}

TEST(LedgerTest, ARepeatedForwardIsIgnored) {
  LedgerRig rig;
  rig.accept(2, 0);
  rig.sent.clear();
  EXPECT_FALSE(rig.forward(2, 0));
  EXPECT_TRUE(rig.sent.empty());
  EXPECT_EQ(rig.ledger.entries().live(), 1u);
  EXPECT_EQ(rig.refused, std::vector{rig.transfer}) << "its frames are not wanted";
  // Also after the COMMIT.
  rig.work_all();
  rig.commit(0, {rig.own(1)});
  rig.sent.clear();
  EXPECT_FALSE(rig.forward(2, 0));
  EXPECT_TRUE(rig.sent.empty());
}

TEST(LedgerTest, AHintBeforeTheGradientIsFollowedOnce) {
  const GradientHint hint{session(60), entry_name(60, 1)};
  LedgerRig rig(0, 2);
  rig.list(1, {60, 61, 62});
  const EntrySerial entry = rig.accept(1, 0);
  rig.ledger.on_hint(session(1), Hint{lease(1, 0), hint}, rig.now);
  EXPECT_TRUE(rig.take_sent<Take>(60).empty()) << "not before our own forward is done: the courier's hop carries it";
  EXPECT_EQ(rig.ledger.entries().find(entry)->hint->entry_name, hint.entry_name);
  rig.work();
  EXPECT_EQ(rig.take_sent<Take>(60).size(), 1u);
  rig.ledger.on_hint(session(1), Hint{lease(1, 0), hint}, rig.now);
  EXPECT_TRUE(rig.take_sent<Take>(60).empty()) << "a claim stands there";
  const GradientHint other{session(61), entry_name(61, 1)};
  rig.ledger.on_hint(session(3), Hint{lease(1, 0), other}, rig.now);
  EXPECT_TRUE(rig.take_sent<Take>(61).empty()) << "not from whom the claim is not";
  rig.ledger.on_hint(session(1), Hint{lease(1, 0), other}, rig.now);
  EXPECT_EQ(rig.take_sent<Take>(61).size(), 1u);
  rig.ledger.gradient_arrived(id(0), rig.gradient_from_below(0, {entry_name(60, 1)}));
  rig.ledger.on_hint(session(1), Hint{lease(1, 0), {session(62), entry_name(62, 1)}}, rig.now);
  EXPECT_TRUE(rig.take_sent<Take>(62).empty()) << "a gradient is here";
}

TEST(LedgerTest, ATakeJoinsByTokenAndAnUnknownOneIsGone) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  rig.ledger.on_take(session(3), Take{id(0), lease(3, 1), rig.own(entry), {session(1), session(3)}}, rig.now);
  EXPECT_EQ(rig.take_sent<Gradient>(3).size(), 1u);
  rig.ledger.on_take(session(3), Take{id(0), lease(3, 1), rig.own(entry), {}}, rig.now);
  EXPECT_TRUE(rig.take_sent<Gone>(3).empty()) << "a repeat";
  const Take wrong[] = {{id(0), lease(4, 1), rig.own(77), {}},             // no such entry
                        {id(5), lease(4, 2), rig.own(entry), {}},          // of another microbatch
                        {id(0), lease(4, 3), entry_name(60, entry), {}}};  // of another session
  for (const Take& take : wrong) {
    rig.ledger.on_take(session(4), take, rig.now);
    EXPECT_EQ(rig.take_sent<Gone>(4).size(), 1u);
  }
  // Before it is counted the answer is Have; the gradient follows.
  const EntrySerial young = rig.accept(2, 1);
  rig.ledger.on_take(session(3), Take{id(1), lease(3, 2), rig.own(young), {session(1), session(3)}}, rig.now);
  EXPECT_EQ(rig.take_sent<Have>(3).size(), 1u);
  rig.work_all();
  EXPECT_EQ(rig.take_sent<Gradient>(3).size(), 1u);
}

TEST(LedgerTest, TheLastReleaseEndsAnEntryAndNotTheFirst) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  rig.forward(3, 0);
  rig.release(2, 0);
  EXPECT_EQ(rig.state(entry), S::kCounted);
  rig.release(4, 0);
  EXPECT_EQ(rig.state(entry), S::kCounted) << "no claim of session 4";
  rig.release(3, 0);
  EXPECT_EQ(rig.state(entry), S::kUndoing);
  const auto job = rig.work();
  EXPECT_EQ(job->kind, JobKind::kUndo);
  EXPECT_TRUE(job->empties) << "the only entry of its window: what rounding leaves is cleared";
  EXPECT_EQ(rig.state(entry), std::nullopt);
  EXPECT_TRUE(rig.windows.empty());
  EXPECT_EQ(rig.discarded, std::vector{entry});
}

TEST(LedgerTest, AnotherSessionsReleaseOfALeaseIsIgnored) {
  LedgerRig rig;
  const EntrySerial entry = rig.accept(2, 0);
  rig.ledger.on_release(session(3), Release{lease(2, 0)});
  EXPECT_EQ(rig.state(entry), S::kReady);
}

TEST(LedgerTest, ClaimsExpireUnlessTheyAreRenewed) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  for (int i = 0; i < 8; ++i) {
    rig.now += 3s;
    rig.renew(2, 0);
    rig.ledger.tick(rig.now);
    ASSERT_EQ(rig.state(entry), S::kCounted);
  }
  rig.now += 4s;
  rig.ledger.tick(rig.now);
  EXPECT_EQ(rig.state(entry), S::kUndoing);
  EXPECT_EQ(rig.written[EventKind::kUndo], 1u);
  rig.renew(2, 0);
  EXPECT_EQ(rig.take_sent<Gone>(2).size(), 1u) << "unknown now";
}

TEST(LedgerTest, TheEndOfASessionDropsItsClaimsOnly) {
  LedgerRig rig;
  const EntrySerial both = rig.count(2, 0);
  rig.forward(3, 0);
  const EntrySerial alone = rig.accept(2, 1);
  rig.ledger.on_session_over(session(2));
  EXPECT_EQ(rig.state(both), S::kCounted);
  EXPECT_EQ(rig.state(alone), std::nullopt);
  EXPECT_EQ(rig.work()->kind, JobKind::kRelease);
  EXPECT_EQ(rig.dropped, std::set{alone});
}

TEST(LedgerTest, TheWinnerOfItsHopHearsOfTheCommit) {
  LedgerRig rig(0, 2);
  rig.list(1, {60});
  const EntrySerial entry = rig.accept(1, 0);
  rig.work();
  const auto asked = rig.take_sent<Forward>(60);
  ASSERT_EQ(asked.size(), 1u);
  Gradient gradient = rig.gradient_from_below(0, {entry_name(60, 8)});
  gradient.lease = asked[0].lease;
  EXPECT_TRUE(rig.courier.on_message({peer(60), session(60), PeerRole::kPeer}, gradient, 0, rig.now));
  rig.work();
  ASSERT_EQ(rig.state(entry), S::kCounted);
  rig.commit(0, {rig.own(entry), entry_name(60, 8)});
  const auto told = rig.take_sent<Commit>(60);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].items.at(0).path, std::vector{entry_name(60, 8)});
  EXPECT_EQ(rig.discarded, std::vector{entry}) << "its tensors";
}

TEST(LedgerTest, CommitSettlesForGoodAndIsAcknowledgedEachTime) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  for (int i = 0; i < 2; ++i) {
    rig.commit(0, {rig.own(entry)});
    const auto acks = rig.take_sent<CommitAck>(1);
    ASSERT_EQ(acks.size(), 1u);
    EXPECT_EQ(acks[0].items.at(0).state, CommitState::kCommitted);
  }
  EXPECT_EQ(rig.written[EventKind::kSettled], 1u);
  rig.release(2, 0);
  rig.now += 100s;
  rig.ledger.tick(rig.now);
  rig.commit(0, {entry_name(60, 1)});
  EXPECT_EQ(rig.state(entry), S::kCommitted) << "never undone";
  EXPECT_EQ(rig.work_all(), (std::vector{JobKind::kRelease, JobKind::kInnerStep}));
  rig.ledger.secure({entry});
  rig.commit(0, {rig.own(entry)});
  EXPECT_EQ(rig.take_sent<CommitAck>(1).at(0).items.at(0).state, CommitState::kMerged);
}

TEST(LedgerTest, CommitOfAnUndoneOrUnknownTokenIsGoneAndClosesTheMicrobatch) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  rig.release(2, 0);
  rig.commit(0, {rig.own(entry)});  // while the undo waits for the device
  EXPECT_EQ(rig.take_sent<CommitAck>(1).at(0).items.at(0).state, CommitState::kGone);
  rig.work_all();
  rig.commit(0, {rig.own(entry)});
  EXPECT_EQ(rig.take_sent<CommitAck>(1).at(0).items.at(0).state, CommitState::kGone);
  EXPECT_FALSE(rig.forward(3, 0));
  EXPECT_TRUE(rig.told_busy(3, BusyReason::kClosed));
  EXPECT_EQ(rig.written[EventKind::kCommitGone], 2u);
}

TEST(LedgerTest, CommitOfAnotherTokenOfTheMicrobatchUndoesOurs) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  rig.commit(0, {entry_name(60, 9)});
  EXPECT_EQ(rig.state(entry), S::kUndoing);
  EXPECT_EQ(rig.take_sent<Gone>(2).size(), 1u);
  EXPECT_TRUE(rig.take_sent<CommitAck>(1).empty()) << "that entry is not ours to acknowledge";
}

TEST(LedgerTest, ATokenUnderAnotherMicrobatchSettlesNothing) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  rig.commit(1, {rig.own(entry)});
  EXPECT_EQ(rig.state(entry), S::kCounted);
  rig.commit(0, {});
  EXPECT_TRUE(rig.take_sent<CommitAck>(1).empty());
}

TEST(LedgerTest, LowEndsWhatIsUncommittedAndForgetsWhatIsMerged) {
  LedgerRig rig;
  const EntrySerial merged = rig.count(2, 0), loser = rig.count(2, 1);
  rig.commit(0, {rig.own(merged)});
  rig.work_all();
  rig.ledger.on_lows({{kTrainer, 2}});
  EXPECT_EQ(rig.state(merged), S::kCommitted) << "in the parameters, in no round that we know of";
  EXPECT_EQ(rig.state(loser), S::kUndoing);
  EXPECT_EQ(rig.take_sent<Gone>(2).size(), 1u);
  rig.ledger.secure({merged});
  EXPECT_EQ(rig.state(merged), std::nullopt);
  rig.work_all();
  EXPECT_TRUE(rig.ledger.entries().all().empty());
  EXPECT_TRUE(rig.windows.stepped().empty());
  rig.sent.clear();
  rig.commit(0, {rig.own(merged)});
  EXPECT_EQ(rig.take_sent<CommitAck>(1).at(0).items.at(0).state, CommitState::kMerged) << "long decided and forgotten";
  rig.ledger.on_lows({{kTrainer, 1}});
  EXPECT_EQ(rig.ledger.low_of(kTrainer), 2u) << "it rises only";
}

TEST(LedgerTest, AfterAnUndoAFreshEntryHasANewToken) {
  LedgerRig rig;
  const EntrySerial old = rig.count(2, 0);
  rig.release(2, 0);
  EXPECT_FALSE(rig.forward(3, 0)) << "not while the device undoes it";
  EXPECT_TRUE(rig.told_busy(3, BusyReason::kCrowded));
  rig.work_all();
  const auto fresh = rig.forward(3, 0, 9);
  ASSERT_TRUE(fresh);
  EXPECT_GT(*fresh, old);
  rig.commit(0, {rig.own(old)});
  EXPECT_EQ(rig.take_sent<CommitAck>(1).at(0).items.at(0).state, CommitState::kGone)
      << "the old entry never comes back";
}

}  // namespace
}  // namespace shoal
