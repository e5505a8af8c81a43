// PROTOCOL.md, "A hop, at its holder", where something is lost: links, silent holders further down, peers that cannot
// be asked.
#include "courier_rig.h"

namespace shoal {
namespace {

using namespace naming;

class CourierLossTest : public CourierRig {};

TEST_F(CourierLossTest, ADeadLinkFiresAtOnceAndTheChildStays) {
  open();
  const Lease first = asked().second.lease;
  courier.on_link_down(remote_of(kB), now);
  EXPECT_TRUE(asked_nobody());
  courier.on_link_down(remote_of(kA), now);
  EXPECT_EQ(asked().first, session(kC)) << "B's link is down as well";
  EXPECT_TRUE(take_out<Release>().empty());
  gradient(kA, first);
  EXPECT_EQ(won.size(), 1u);
}

TEST_F(CourierLossTest, WaitingGivesTheHintToAYoungerChild) {
  measure(1s);
  open();
  pass(3100ms);
  (void)take_out<Forward>();
  tell(70, Waiting{id(0), entry_name(70, 2), session(kA)});
  const auto hints = take_out<Hint>();
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_EQ(hints[0].first, session(kB));
  EXPECT_EQ(hints[0].second.where.entry_name, entry_name(70, 2));
  EXPECT_TRUE(asked_nobody());
}

TEST_F(CourierLossTest, WaitingWithoutAYoungerChildAsksAnotherWithTheHintAndAtMostThreeStand) {
  measure(1s);
  open();
  pass(3100ms);
  (void)take_out<Forward>();
  tell(70, Waiting{id(0), entry_name(70, 2), session(kB)});
  const auto [to, forward] = asked();
  EXPECT_EQ(to, session(kC));
  EXPECT_EQ(forward.hint->entry_name, entry_name(70, 2));
  EXPECT_TRUE(take_out<Release>().empty()) << "a re-point may be the third";
  serve({kA, kB, kC, 13});
  tell(70, Waiting{id(0), entry_name(70, 2), session(kC)});
  EXPECT_EQ(asked().first, session(13));
  EXPECT_EQ(take_out<Release>().at(0).first, session(kA));
}

TEST_F(CourierLossTest, WaitingAboutAStrangerOrAWonHopIsIgnored) {
  open();
  const Lease lease = asked().second.lease;
  tell(70, Waiting{id(0), entry_name(70, 2), session(kC)});
  EXPECT_TRUE(out.empty()) << "session C was never asked";
  tell(70, Waiting{id(8), entry_name(70, 2), session(kA)});
  EXPECT_TRUE(out.empty());
  gradient(kA, lease);
  tell(70, Waiting{id(0), entry_name(70, 2), session(kA)});
  EXPECT_TRUE(out.empty());
}

TEST_F(CourierLossTest, AHintMakesATakeInsteadOfAForward) {
  open(0, GradientHint{session(kC), entry_name(kC, 4)});
  EXPECT_TRUE(asked_nobody());
  const auto takes = take_out<Take>();
  ASSERT_EQ(takes.size(), 1u);
  EXPECT_EQ(takes[0].first, session(kC));
  courier.take(id(0), GradientHint{session(kC), entry_name(kC, 4)}, now);
  EXPECT_TRUE(take_out<Take>().empty()) << "a claim there stands already";
  tell(kC, Gone{takes[0].second.lease});
  EXPECT_EQ(asked().first, session(kA)) << "gone there: a plain Forward";
}

TEST_F(CourierLossTest, ATakeMayBeTheThirdChildAndNotTheFourth) {
  measure(1s);
  open();
  pass(3100ms);
  courier.take(id(0), GradientHint{session(kC), entry_name(kC, 4)}, now);
  EXPECT_TRUE(take_out<Release>().empty());
  courier.take(id(0), GradientHint{session(13), entry_name(13, 4)}, now);
  EXPECT_EQ(take_out<Release>().size(), 1u);
  EXPECT_EQ(courier.hops().renewals().size(), 3u);
}

TEST_F(CourierLossTest, ARejectedGradientAsksAnotherPeer) {
  open();
  const Lease lease = asked().second.lease;
  gradient(kA, lease);
  courier.reject(id(0), "not finite", now);
  EXPECT_TRUE(courier.hops().waiting(id(0)));
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_EQ(take_out<Release>().at(0).second.lease, lease);
  EXPECT_TRUE(health.suspected(session(kA)));
}

// A sender that may only have handed it on is not suspected: it is left alone with this microbatch.
TEST_F(CourierLossTest, ARejectedGradientThatMayBeAnothersFaultSuspectsNobody) {
  open();
  gradient(kA, asked().second.lease);
  courier.reject(id(0), "a forged path", now, Courier::Fault::kUnknown);
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_FALSE(health.suspected(session(kA)));
}

// The link proves the lie.
TEST_F(CourierLossTest, APathThatDoesNotBeginWithItsSendersEntryIsRefusedAndItsSenderRests) {
  open();
  const Lease lease = asked().second.lease;
  Gradient forged = gradient_of(kA, lease);
  forged.path = {entry_name(kB, 5)};
  tell(kA, forged);
  EXPECT_TRUE(won.empty());
  EXPECT_TRUE(courier.hops().waiting(id(0)));
  EXPECT_EQ(take_out<Release>().at(0).second.lease, lease);
  EXPECT_EQ(health.why_not(session(kA), now + kPeerRest.first - 1ms, WhyNot::kUnfit), WhyNot::kUnfit);
  EXPECT_NE(health.why_not(session(kA), now + kPeerRest.first, WhyNot::kUnfit), WhyNot::kUnfit);
  gradient(kB, asked().second.lease);
  EXPECT_EQ(won.size(), 1u);
}

TEST_F(CourierLossTest, TheLastPeerOfAStageThatForgesPathsIsAskedAgain) {
  serve({kA});
  open();
  Gradient forged = gradient_of(kA, asked().second.lease);
  forged.path.clear();
  tell(kA, forged);
  EXPECT_TRUE(won.empty());
  EXPECT_EQ(health.why_not(session(kA), now, WhyNot::kUnfit), WhyNot::kResting)
      << "as after any gradient that cannot be used";
}

TEST_F(CourierLossTest, WithoutAnyPeerItParksSaysSoAndGoesOn) {
  serve({});
  open();
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_TRUE(parked[0].second);
  EXPECT_EQ(courier.hops().parked(), 1u);
  pass(3s, {});
  EXPECT_EQ(parked.size(), 1u) << "said once";
  serve({kB});
  pass(1100ms, {});
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_EQ(courier.hops().parked(), 0u);
  EXPECT_FALSE(parked.back().second);
}

TEST_F(CourierLossTest, APeerThatCannotBeReachedCountsAsBusy) {
  unreachable = session(kA);
  open();
  EXPECT_TRUE(asked_nobody());
  pass(60ms);
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_EQ(rates.in_flight(session(kA)), 0u);
}

TEST_F(CourierLossTest, AnOldDeadChildDoesNotKeepAHopFromAskingAgain) {
  measure(1s);
  serve({kA, kB});
  open();
  (void)asked();
  pass(1100ms, {kB});  // A is dead
  const Lease second = asked().second.lease;
  busy(kB, second);
  EXPECT_TRUE(asked_nobody());
  pass(120ms, {kB});
  EXPECT_EQ(asked().first, session(kB))
      << "A is overdue: B is asked again as soon as its Busy is over, not after a deadline of A";
}

TEST_F(CourierLossTest, WithOneReplicaTheHopKeepsItsOverdueChild) {
  measure(1s);
  serve({kA});
  open();
  const Lease lease = asked().second.lease;
  pass(30s, {});
  EXPECT_TRUE(asked_nobody());
  EXPECT_TRUE(take_out<Release>().empty());
  gradient(kA, lease);
  EXPECT_EQ(won.size(), 1u);
}

TEST_F(CourierLossTest, ThousandsOfHopsLeaveNothingBehind) {
  for (std::uint64_t serial = 0; serial < 2000; ++serial) {
    open(serial);
    gradient(kA, asked().second.lease);
    courier.commit(id(serial));
  }
  courier.tick(now, {{kTrainer, 2000}});
  EXPECT_EQ(courier.hops().size(), 0u);
  EXPECT_TRUE(courier.hops().renewals().empty());
  EXPECT_EQ(rates.in_flight(session(kA)), 0u);
}

}  // namespace
}  // namespace shoal
