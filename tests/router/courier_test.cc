// PROTOCOL.md, "A hop, at its holder", row by row.
#include "courier_rig.h"

namespace shoal {
namespace {

using namespace naming;

class CourierTest : public CourierRig {};

TEST_F(CourierTest, WhatAHopTookCorrectsWhatItsPeerSaysOfItself) {
  const auto lie = [&](std::uint64_t serial) {
    open(serial);
    const auto [to, message] = asked();
    pass(300ms);
    Gradient gradient = gradient_of(to.peer_tag, message.lease, serial);
    gradient.forward_us = gradient.backward_us = 1000;
    tell(to.peer_tag, gradient);
  };
  LinkStats near;
  near.up = true;
  near.rtt = Duration{1};
  stats_of[naming::peer(kA)] = near;
  lie(1);
  EXPECT_NEAR(rates.expected_seconds(naming::session(kA), 0, now), 0.002, 1e-9) << "its word is all that is known";
  EXPECT_NEAR(rates.hop_seconds(naming::session(kA)), 0.3, 1e-6);
  lie(2);
  EXPECT_NEAR(rates.expected_seconds(naming::session(kA), 0, now), 0.3, 1e-6);
}

TEST_F(CourierTest, OpeningSendsAForwardUnderANewLease) {
  open(0);
  const auto [to, forward] = asked();
  EXPECT_EQ(to, session(kA));
  EXPECT_EQ(forward.lease.session, session(1));
  EXPECT_EQ(forward.above.back(), session(1));
  EXPECT_TRUE(courier.hops().waiting(id(0)));
  open(1);
  EXPECT_NE(asked().second.lease, forward.lease);
}

TEST_F(CourierTest, TheTimerOpensASecondBranchAndTheFirstStays) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(2900ms);
  EXPECT_TRUE(asked_nobody());
  pass(200ms);
  const auto [to, second] = asked();
  EXPECT_EQ(to, session(kB));
  EXPECT_TRUE(take_out<Release>().empty());
  EXPECT_TRUE(health.suspected(session(kA)));
  EXPECT_EQ(written[EventKind::kHopTimer], 1u);
  gradient(kA, first);
  EXPECT_EQ(courier.hops().won_by(id(0)), session(kA)) << "the first one may still win";
}

TEST_F(CourierTest, AThirdBranchReleasesTheOldestAndOnlyTheOldest) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(3100ms);
  const Lease second = asked().second.lease;
  pass(3100ms);
  const auto [to, third] = asked();
  EXPECT_EQ(to, session(kC));
  const auto released = take_out<Release>();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].first, session(kA));
  EXPECT_EQ(released[0].second.lease, first);
  gradient(kB, second);
  EXPECT_EQ(courier.hops().won_by(id(0)), session(kB)) << "the second one's claim still stands";
}

TEST_F(CourierTest, ASilentPeerFiresTheTimerAfterASecondWhateverItsDeadline) {
  open();
  const Lease first = asked().second.lease;
  progress(kA, first, HopPhase::kBelow);
  pass(5s, {kA});
  EXPECT_TRUE(asked_nobody()) << "it waits for a later stage: no deadline runs";
  pass(1100ms, {});
  EXPECT_EQ(asked().first, session(kB));
}

// Bulk portions fill a loop's turns, and a turn runs its timers first: the beats wait behind them.
TEST_F(CourierTest, WhoStoodStillOrReadsLateTakesNobodyForSilent) {
  open();
  progress(kA, asked().second.lease, HopPhase::kBelow);
  for (int turn = 0; turn < 20; ++turn) {
    now += 1200ms;
    courier.tick(now);
    hear(kA);
  }
  EXPECT_TRUE(asked_nobody()) << "it was heard in every turn";
  now += 30s;
  courier.tick(now);
  EXPECT_TRUE(asked_nobody()) << "it was we who stood still";
  pass(700ms, {});
  EXPECT_TRUE(asked_nobody()) << "that was not listened to, but for a quarter of a second";
  pass(300ms, {});
  EXPECT_EQ(asked().first, session(kB));
}

// A slow line brings parts of frames for a long time, and no message.
TEST_F(CourierTest, AnyByteOfALinkIsASignOfLife) {
  open();
  progress(kA, asked().second.lease, HopPhase::kBelow);
  LinkStats& link = stats_of[peer(kA)];
  link.up = true;
  for (int i = 0; i < 20; ++i) {
    link.heard = now;
    pass(400ms, {});
  }
  EXPECT_TRUE(asked_nobody());
  pass(1100ms, {});
  EXPECT_EQ(asked().first, session(kB)) << "now the line brings nothing";
}

// Over a long way the handshakes of a link take longer than a silence.
TEST_F(CourierTest, WhoIsBeingDialledIsNotSilentYet) {
  stats_of[peer(kA)] = {};
  open();
  (void)asked();
  pass(3900ms, {});
  EXPECT_TRUE(asked_nobody());
  pass(300ms, {});
  EXPECT_EQ(asked().first, session(kB));
}

// What waits in our own queue is not the peer's time, unless the line takes nothing of it.
TEST_F(CourierTest, ADeadlineBeginsWhenTheFramesLeftOurOwnQueue) {
  measure(1s);
  for (const int turns : {5, 0}) {
    ahead[next_transfer] = 5'000'000;
    const TransferId transfer = next_transfer;
    open(transfer);
    const std::uint64_t first = asked().first.peer_tag;
    for (int i = 0; i < turns; ++i) {
      ahead[transfer] -= 1'000'000;
      pass(3100ms);
      EXPECT_TRUE(asked_nobody()) << ahead[transfer] << " bytes are left";
    }
    pass(3100ms);
    const auto [second, message] = asked();
    EXPECT_NE(second.peer_tag, first);
    gradient(second.peer_tag, message.lease, transfer);
  }
}

TEST_F(CourierTest, ADeadlineRunsWhileWeListen) {
  measure(1s);
  open();
  (void)asked();
  pass(1s);
  now += 30s;
  courier.tick(now);
  EXPECT_TRUE(asked_nobody()) << "what came meanwhile is not read yet";
  pass(1500ms);
  EXPECT_TRUE(asked_nobody());
  pass(400ms);
  EXPECT_EQ(asked().first, session(kB));
}

TEST_F(CourierTest, APeerThatBeatsLateIsGivenTwiceItsLongestPause) {
  open();
  progress(kA, asked().second.lease, HopPhase::kBelow);
  pass(900ms, {});
  hear(kA);
  pass(1700ms, {});
  EXPECT_TRUE(asked_nobody());
  pass(200ms, {});
  EXPECT_EQ(asked().first, session(kB));
}

TEST_F(CourierTest, ALatePausePassesWithTheTimeThatIsWaited) {
  open();
  progress(kA, asked().second.lease, HopPhase::kBelow);
  pass(900ms, {});
  pass(8s, {kA});
  pass(1100ms, {});
  EXPECT_EQ(asked().first, session(kB));
}

TEST_F(CourierTest, NeitherAFreezeNorATimeWithoutClaimsTeachesPatience) {
  serve({kA});
  open();
  gradient(kA, asked().second.lease);
  pass(900ms, {});
  hear(kA);  // nothing was awaited of it
  open(1);
  progress(kA, asked().second.lease, HopPhase::kBelow);
  pass(1100ms, {});
  EXPECT_EQ(written[EventKind::kHopTimer], 1u);
  pass(3s, {});
  hear(kA);  // it thaws
  const std::uint64_t before = written[EventKind::kHopTimer];
  pass(1100ms, {});
  EXPECT_EQ(written[EventKind::kHopTimer], before + 1);
}

TEST_F(CourierTest, EachPhaseHasADeadlineOfItsOwnThatNewsRestart) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(2s);
  progress(kA, first, HopPhase::kBackward);
  pass(2900ms);
  EXPECT_TRUE(asked_nobody());
  progress(kA, first, HopPhase::kBackward);  // the same again is no news
  pass(200ms);
  EXPECT_EQ(asked().first, session(kB));
}

TEST_F(CourierTest, BusyAsksAnotherAtOnceAndStopsTheTransfer) {
  open();
  const auto [to, first] = asked();
  busy(kA, first.lease);
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_EQ(dropped, std::vector<TransferId>{1});
  EXPECT_TRUE(take_out<Release>().empty()) << "it never had a claim";
}

TEST_F(CourierTest, ABusyPeerIsWaitedForWhileTheOtherOneRests) {
  serve({kA, kB});
  health.missed(session(kB), now);
  open();
  const auto [to, forward] = asked();
  ASSERT_EQ(to, session(kA));
  busy(kA, forward.lease);
  EXPECT_TRUE(asked_nobody()) << "a probe now would cost the patience that a silent peer is given";
  pass(100ms);
  EXPECT_EQ(asked().first, session(kA));
  pass(PeerHealth::kRestMin);
  open(1);
  const auto [first, again] = asked();
  busy(first.peer_tag, again.lease);
  EXPECT_EQ(asked().first, session(kB)) << "its probe is due";
}

TEST_F(CourierTest, WhenAllAreBusyItAsksAgainAfterABackoff) {
  open();
  for (const std::uint64_t tag : {kA, kB, kC}) busy(tag, asked().second.lease);
  EXPECT_TRUE(asked_nobody());
  pass(100ms);
  EXPECT_EQ(take_out<Forward>().size(), 1u);
  EXPECT_TRUE(parked.empty()) << "busy is not parked";
}

TEST_F(CourierTest, GoneAndTheEndOfASessionAskAnother) {
  open();
  tell(kA, Gone{asked().second.lease});
  EXPECT_EQ(asked().first, session(kA)) << "gone is no refusal: the same peer may be asked";
  over(kA);
  EXPECT_EQ(asked().first, session(kB));
}

TEST_F(CourierTest, AnswersUnderALeaseOfAnotherSessionAreIgnored) {
  open();
  const Lease lease = asked().second.lease;
  busy(kB, lease);
  tell(kB, Gone{lease});
  gradient(kB, lease);
  EXPECT_TRUE(won.empty());
  EXPECT_TRUE(asked_nobody());
}

TEST_F(CourierTest, HaveStopsTheTransferAndTheDeadline) {
  measure(1s);
  open();
  const Lease lease = asked().second.lease;
  tell(kA, Have{lease});
  EXPECT_EQ(dropped, std::vector<TransferId>{1});
  pass(20s);
  EXPECT_TRUE(asked_nobody());
}

TEST_F(CourierTest, TheFirstGradientWinsAndTheOthersAreReleased) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(3100ms);
  const Lease second = asked().second.lease;
  gradient(kA, first);
  ASSERT_EQ(won.size(), 1u);
  EXPECT_EQ(won[0].path, (std::vector{entry_name(kA, 5)}));
  const auto released = take_out<Release>();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].second.lease, second);
  gradient(kA, first);
  EXPECT_EQ(won.size(), 1u) << "a repeat";
  EXPECT_TRUE(take_out<Release>().empty());
  gradient(kB, second);
  EXPECT_EQ(take_out<Release>().size(), 1u);
  pass(60s, {});
  EXPECT_TRUE(asked_nobody()) << "a won hop has no timer";
  EXPECT_EQ(in_flight(), 0u);
}

TEST_F(CourierTest, BusyOrGoneOfTheWonClaimChangesNothing) {
  open();
  const Lease lease = asked().second.lease;
  gradient(kA, lease);
  busy(kA, lease);
  tell(kA, Gone{lease});
  over(kA);
  EXPECT_TRUE(asked_nobody());
  EXPECT_EQ(courier.hops().won_by(id(0)), session(kA));
}

TEST_F(CourierTest, CloseReleasesEveryChild) {
  measure(1s);
  open();
  pass(3100ms);
  courier.close(id(0));
  EXPECT_EQ(take_out<Release>().size(), 2u);
  EXPECT_FALSE(courier.hops().holds(id(0)));
  EXPECT_EQ(in_flight(), 0u);
}

TEST_F(CourierTest, CommitTellsTheWinnerOnceAndStopsRenewing) {
  open();
  const Lease lease = asked().second.lease;
  EXPECT_TRUE(courier.hops().renewals().at(session(kA)).at(0).want);
  gradient(kA, lease);
  EXPECT_FALSE(courier.hops().renewals().at(session(kA)).at(0).want);
  courier.commit(id(0));
  courier.commit(id(0));
  const auto commits = take_out<Commit>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].second.items.at(0).path, (std::vector{entry_name(kA, 5)}));
  EXPECT_TRUE(courier.hops().renewals().empty());
}

// A beat or a repeated gradient of the winner that crossed the COMMIT was answered Release, which could overtake it and
// undo the winner.
TEST_F(CourierTest, LateWordsOfACommittedWinnerAreNotAnsweredWithARelease) {
  open();
  const Lease lease = asked().second.lease;
  gradient(kA, lease);
  courier.commit(id(0));
  progress(kA, lease, HopPhase::kBackward);
  gradient(kA, lease);
  EXPECT_TRUE(take_out<Release>().empty());
  courier.tick(now, {{kTrainer, 0}});
  EXPECT_TRUE(courier.hops().holds(id(0)));
  courier.tick(now, {{kTrainer, 1}});
  EXPECT_FALSE(courier.hops().holds(id(0)));
  progress(kA, lease, HopPhase::kBackward);
  EXPECT_EQ(take_out<Release>().size(), 1u) << "below low nothing can be undone by it";
}

TEST_F(CourierTest, ForgetBelowKeepsWhatIsNotCommitted) {
  open(0);
  courier.tick(now, {{kTrainer, 10}});
  EXPECT_TRUE(courier.hops().holds(id(0)));
}

TEST_F(CourierTest, ATickLooksAtNoHopThatIsCommitted) {
  std::uint64_t before = 0;
  const auto looked_at = [&] {
    return courier.counters().looked_at - std::exchange(before, courier.counters().looked_at);
  };
  open(0);
  courier.tick(now);
  const std::uint64_t of_one = looked_at();
  EXPECT_GT(of_one, 0u);
  for (std::uint64_t serial = 1; serial <= 100; ++serial) {  // a long round: no low-water mark passes
    take_out<Forward>();
    open(serial);
    gradient(kA, asked().second.lease, serial);
    courier.commit(id(serial));
  }
  EXPECT_EQ(courier.hops().size(), 101u);
  (void)looked_at();
  courier.tick(now);
  EXPECT_EQ(looked_at(), of_one);
}

TEST_F(CourierTest, TheParkedAreCountedAsTheyCome) {
  serve({});
  for (std::uint64_t serial = 0; serial < 3; ++serial) open(serial);
  EXPECT_EQ(courier.hops().parked(), 3u);
  courier.close(id(0));
  EXPECT_EQ(courier.hops().parked(), 2u);
  serve({kA});
  pass(1s, {kA});
  EXPECT_EQ(courier.hops().parked(), 0u);
}

}  // namespace
}  // namespace shoal
