// Peers that are full: what a holder learns from a refusal, and how many microbatches meet it.
#include "router/peer_credits.h"

#include "courier_rig.h"

namespace shoal {
namespace {

using namespace naming;

class FullPeersTest : public CourierRig {
 protected:
  void SetUp() override { serving = {session(kA), session(kB)}; }
  void commit_won(std::uint64_t serial, std::uint64_t tag, const Lease& lease) {
    Gradient message;
    message.lease = lease;
    message.microbatch = id(serial);
    message.path = {entry_name(tag, 5)};
    ASSERT_TRUE(courier.wants(session(tag), message, now));
    courier.on_gradient(session(tag), message, {}, now);
    courier.commit(id(serial));
  }
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
  const int probes = static_cast<int>(10s / PeerCredits::kPauseMax);
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
  serving = {session(kA)};
  open(0);
  const Lease holds = asked().second.lease;
  progress(kA, holds, HopPhase::kForward);
  open(1);
  busy(kA, asked().second.lease);
  open(2);
  EXPECT_TRUE(asked_nobody());
  refuse_for(1900ms);  // pauses have grown
  commit_won(0, kA, holds);
  pass(20ms);
  const auto [to, forward] = asked();
  EXPECT_EQ(forward.microbatch, id(1));
  progress(kA, forward.lease, HopPhase::kForward);
  pass(40ms);
  EXPECT_EQ(asked().second.microbatch, id(2)) << "it took one: the next tries it at once";
}

TEST_F(FullPeersTest, AWonMicrobatchHoldsItsPlaceUntilItIsCommitted) {
  serving = {session(kA)};
  open(0);
  const Lease holds = asked().second.lease;
  open(1);
  busy(kA, asked().second.lease);
  Gradient message;
  message.lease = holds;
  message.microbatch = id(0);
  ASSERT_TRUE(courier.wants(session(kA), message, now));
  courier.on_gradient(session(kA), message, {}, now);
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
  serving = {session(kA), session(kB)};
  open(0);
  const auto [to, forward] = asked();
  ASSERT_EQ(to, session(kA));
  open(1);
  busy(kA, asked().second.lease);
  busy(kB, asked().second.lease);
  ASSERT_TRUE(asked_nobody());
  courier.on_waiting(session(99), Waiting{id(0), entry_name(99, 7), session(kA)}, now);
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
  pass(PeerCredits::kRemembered);
  open(1);
  EXPECT_EQ(asked().first, session(kA));
  open(2);
  EXPECT_EQ(asked().first, session(kA));
}

}  // namespace
}  // namespace shoal
