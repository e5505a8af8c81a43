// Whether a peer may be asked: what a holder learns from misses and refusals, and how many microbatches meet a full
// peer.
#include "router/peer_health.h"

#include "courier_rig.h"

namespace shoal {
namespace {

using namespace naming;

bool resting(const PeerHealth& health, TimePoint now) { return health.why_not(session(1), now) == WhyNot::kResting; }

TEST(PeerHealthTest, AMissSuspectsUntilADelivery) {
  PeerHealth health;
  health.missed(session(1), at(0s));
  EXPECT_TRUE(health.suspected(session(1)));
  EXPECT_FALSE(health.suspected(session(2)));
  health.delivered(session(1));
  EXPECT_FALSE(health.suspected(session(1)));
}

TEST(PeerHealthTest, ASuspectRestsTwiceAsLongAfterEveryProbeThatFailed) {
  PeerHealth health;
  health.missed(session(1), at(10s));
  health.missed(session(1), at(11s));  // another that it had before: no probe
  EXPECT_TRUE(resting(health, at(11900ms)));
  EXPECT_FALSE(resting(health, at(12s)));
  health.missed(session(1), at(13s));
  EXPECT_TRUE(resting(health, at(16900ms)));
  EXPECT_FALSE(resting(health, at(17s)));
  TimePoint now = at(17s);
  for (int probe = 0; probe < 10; ++probe) {
    health.missed(session(1), now);
    now = now + PeerHealth::kRestMax;
    EXPECT_FALSE(resting(health, now)) << "it is probed again, however often it failed";
  }
  health.missed(session(1), now);
  health.delivered(session(1));
  EXPECT_FALSE(resting(health, now));
  health.missed(session(1), now);
  EXPECT_FALSE(resting(health, now + PeerHealth::kRestMin)) << "a delivery forgives all";
}

TEST(PeerHealthTest, ASuspectRestsOnWhileItsLinkStandsAndBringsNothing) {
  PeerHealth health;
  const auto rests = [&](std::optional<TimePoint> heard) {
    health.set_link_heard(session(1), heard, at(15s), false);
    return resting(health, at(15s));
  };
  EXPECT_FALSE(rests(at(9s))) << "nobody suspects it";
  health.missed(session(1), at(10s));
  EXPECT_TRUE(rests(at(9s)));
  EXPECT_FALSE(rests(at(11s)));
  EXPECT_FALSE(rests(std::nullopt)) << "a link that is down is dialled by a probe alone";
}

TEST(PeerHealthTest, AStrandedPeerRestsUntilTheStageAfterItAnswersIt) {
  PeerHealth health;
  health.strand(session(1), at(0s));
  health.delivered(session(1));  // a forward
  EXPECT_TRUE(health.suspected(session(1)));
  health.rejoined(session(1));
  EXPECT_FALSE(health.suspected(session(1)));
  health.missed(session(1), at(1s));
  health.delivered(session(1));
  EXPECT_FALSE(health.suspected(session(1)));
}

TEST(PeerHealthTest, TheStrongestReasonIsToldAndWeakerOnesOnDemand) {
  PeerHealth health;
  const TimePoint now = at(10s);
  EXPECT_EQ(health.why_not(session(1), now), std::nullopt);
  health.missed(session(1), now);
  health.refused(session(1), now, now);
  health.unfit(session(1), now + 30s);
  health.went_down(session(1), now);
  EXPECT_EQ(health.why_not(session(1), now), WhyNot::kDown);
  health.came_up(session(1));
  EXPECT_EQ(health.why_not(session(1), now), WhyNot::kUnfit) << "a new connection changes nothing";
  EXPECT_EQ(health.why_not(session(1), now, WhyNot::kFull), WhyNot::kFull);
  EXPECT_EQ(health.why_not(session(1), now, WhyNot::kResting), WhyNot::kResting);
  EXPECT_EQ(health.why_not(session(1), now + 30s), WhyNot::kSuspected) << "its probe is due";
  health.delivered(session(1));
  EXPECT_EQ(health.why_not(session(1), now + 30s), std::nullopt);
}

class FullPeersTest : public CourierRig {
 protected:
  void SetUp() override { serve({kA, kB}); }
  // Everything that is asked is refused; returns how often each peer was asked.
  std::map<std::uint64_t, int> refuse_for(Duration time) {
    std::map<std::uint64_t, int> asked;
    for (const TimePoint end = now + time; now < end;) {
      for (auto all = take_out<Forward>(); !all.empty(); all = take_out<Forward>())
        for (const auto& [to, forward] : all) {
          ++asked[to.peer_tag];
          busy(to.peer_tag, forward.lease);
        }
      pass(20ms);
    }
    return asked;
  }
};

TEST_F(FullPeersTest, ManyThatWaitAskAFullPeerLikeOne) {
  constexpr std::uint64_t kWaiting = 40;
  for (std::uint64_t serial = 0; serial < kWaiting; ++serial) open(serial);
  auto first = refuse_for(1s);
  EXPECT_LE(first[kA] + first[kB], static_cast<int>(2 * kWaiting) + 2 * 8) << "each was on its way to one of them";
  auto later = refuse_for(10s);
  const int probes = static_cast<int>(10s / PeerHealth::kPauseMax);
  for (const std::uint64_t tag : {kA, kB}) {
    EXPECT_LE(later[tag], probes + 1);
    EXPECT_GE(later[tag], probes / 2) << "they are not forgotten either";
  }
  EXPECT_EQ(courier.counters().stranded, 0u) << "their refusals are an answer to all";
}

TEST_F(FullPeersTest, WhoKnowsNothingOfARefusalYetIsRefusedByTheNextPeerAtMost) {
  open(0);
  busy(kA, asked().second.lease);
  EXPECT_EQ(asked().first, session(kB));
  open(1);
  EXPECT_EQ(asked().first, session(kB)) << "A refused another of ours a moment ago";
}

TEST_F(FullPeersTest, APlaceThatOursLeavesIsTakenAtOnceByTheOldestThatWaits) {
  serve({kA});
  open(0);
  const Lease holds = asked().second.lease;
  progress(kA, holds, HopPhase::kForward);
  open(1);
  busy(kA, asked().second.lease);
  open(2);
  EXPECT_TRUE(asked_nobody());
  refuse_for(1900ms);  // pauses have grown
  gradient(kA, holds);
  courier.commit(id(0));
  pass(20ms);
  const auto [to, forward] = asked();
  EXPECT_EQ(forward.microbatch, id(1));
  progress(kA, forward.lease, HopPhase::kForward);
  pass(40ms);
  EXPECT_EQ(asked().second.microbatch, id(2)) << "it took one: the next tries it at once";
}

TEST_F(FullPeersTest, AWonMicrobatchHoldsItsPlaceUntilItIsCommitted) {
  serve({kA});
  open(0);
  const Lease holds = asked().second.lease;
  open(1);
  busy(kA, asked().second.lease);
  gradient(kA, holds);
  pass(20ms);
  EXPECT_TRUE(asked_nobody()) << "it has the gradient to give again until the commit";
  courier.commit(id(0));
  pass(20ms);
  EXPECT_EQ(asked().second.microbatch, id(1));
}

TEST_F(FullPeersTest, WhoWaitsForRoomHasItsFirstChildAloneWhenThatAnswers) {
  open(0);
  busy(kA, asked().second.lease);
  const auto [to, forward] = asked();
  ASSERT_EQ(to, session(kB));
  progress(kB, forward.lease, HopPhase::kForward);
  refuse_for(1s);
  EXPECT_EQ(courier.counters().branches, 1u) << "A's probes are for those that wait";
}

TEST_F(FullPeersTest, AFullPeerIsAskedAtOnceForWhatItsOwnGradientIsWaitingFor) {
  serve({kA, kB});
  open(0);
  const auto [to, forward] = asked();
  ASSERT_EQ(to, session(kA));
  open(1);
  busy(kA, asked().second.lease);
  busy(kB, asked().second.lease);
  ASSERT_TRUE(asked_nobody());
  tell(99, Waiting{id(0), entry_name(99, 7), session(kA)});
  const auto [other, again] = asked();
  EXPECT_EQ(other, session(kB));
  EXPECT_TRUE(again.hint) << "it has credits apart for this";
}

TEST_F(FullPeersTest, WhatOnlyConcernsOneMicrobatchDoesNotMakeAPeerFull) {
  for (const BusyReason why : {BusyReason::kCrowded, BusyReason::kFailed, BusyReason::kClosed}) {
    open(0);
    busy(kA, asked().second.lease, why);
    EXPECT_EQ(asked().first, session(kB));
    open(1);
    EXPECT_EQ(asked().first, session(kA));
    courier.close(id(0));
    courier.close(id(1));
    out.clear();
  }
}

TEST_F(FullPeersTest, APeerThatNobodyAskedForAWhileHasNoHistory) {
  open(0);
  busy(kA, asked().second.lease);
  courier.close(id(0));
  out.clear();
  pass(PeerHealth::kRemembered);
  open(1);
  EXPECT_EQ(asked().first, session(kA));
  open(2);
  EXPECT_EQ(asked().first, session(kA));
}

}  // namespace
}  // namespace shoal
