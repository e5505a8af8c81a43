// Which processes a holder speaks with, what it measures of their links, and what its courier does over them: frames
// that are awaited, renewals, links that go.
#include "router/neighbours.h"

#include <algorithm>

#include "courier_rig.h"

namespace shoal {
namespace {

using namespace naming;

class NeighboursTest : public CourierRig {
 protected:
  Result<std::vector<Bytes>> frames = std::vector<Bytes>(1);
};

TEST_F(NeighboursTest, OnlyMembersUnderTheirOwnKeyAndTheAuthorityMaySpeak) {
  over(kB);
  EXPECT_TRUE(neighbours.admits(remote_of(kA)));
  EXPECT_TRUE(neighbours.admits(remote_of(kAuthority)));
  EXPECT_FALSE(neighbours.admits(remote_of(kB))) << "its session is over";
  EXPECT_FALSE(neighbours.admits({peer(kB), session(kA), PeerRole::kPeer})) << "a member's session under another key";
}

TEST_F(NeighboursTest, SpeaksToMembersAndToTheAuthorityThatItHeardOf) {
  over(kB);
  EXPECT_FALSE(neighbours.send_to(session(kAuthority), Gone{}, {}).ok());
  courier.on_link_up(remote_of(kAuthority), now);
  EXPECT_TRUE(neighbours.send_to(session(kAuthority), Gone{}, {}).ok());
  EXPECT_TRUE(neighbours.send_to(session(kA), Gone{}, {}).ok());
  EXPECT_EQ(neighbours.send_to(session(kB), Gone{}, {}).code(), ErrorCode::kUnreachable);
  answers = {peer(kA), Session{kA, 2}, PeerRole::kPeer};
  EXPECT_EQ(neighbours.send_to(session(kA), Gone{}, {}).code(), ErrorCode::kStale) << "a younger session answers there";
}

TEST_F(NeighboursTest, ADownOrUnfitPeerIsACandidateOnlyWhenThereIsNoOther) {
  serve({kA, kB});
  const auto candidates = [&] { return neighbours.candidates(StageId(1), now); };
  courier.on_link_down(remote_of(kA), now);
  EXPECT_EQ(candidates(), std::vector{session(kB)});
  courier.on_link_up(remote_of(kA), now);
  EXPECT_EQ(candidates().size(), 2u);
  neighbours.unfit(session(kA), now + 30s);
  courier.on_link_up(remote_of(kA), now);
  EXPECT_EQ(candidates(), std::vector{session(kB)}) << "a new connection changes nothing";
  courier.on_link_down(remote_of(kB), now);
  EXPECT_EQ(candidates().size(), 2u) << "there is no other";
  now += PeerHealth::kDownTime;
  EXPECT_EQ(candidates(), std::vector{session(kB)});
  over(kB);
  EXPECT_EQ(candidates(), std::vector{session(kA)});
}

TEST_F(NeighboursTest, AGradientWinsWhenItsFramesAreHere) {
  open();
  EXPECT_TRUE(tell(kA, gradient_of(kA, asked().second.lease), 7));
  EXPECT_TRUE(won.empty());
  EXPECT_FALSE(courier.on_frames(remote_of(kB), 7, frames, now)) << "a transfer is one link's";
  EXPECT_TRUE(courier.on_frames(remote_of(kA), 7, frames, now));
  EXPECT_EQ(won.size(), 1u);
  EXPECT_FALSE(courier.on_frames(remote_of(kA), 7, frames, now)) << "once";
}

TEST_F(NeighboursTest, AGradientWhoseFramesDoNotComeIsGoneAndAnotherPeerIsAsked) {
  open();
  EXPECT_TRUE(tell(kA, gradient_of(kA, asked().second.lease), 7));
  frames = make_error(ErrorCode::kUnreachable, "dropped");
  EXPECT_TRUE(courier.on_frames(remote_of(kA), 7, frames, now));
  EXPECT_TRUE(won.empty());
  asked();
}

TEST_F(NeighboursTest, FramesThatNobodyWantsAreRefused) {
  open();
  EXPECT_TRUE(tell(kA, gradient_of(kA, lease(1, 99)), 7));
  EXPECT_EQ(refused, std::vector<TransferId>{7});
}

TEST_F(NeighboursTest, ALinkThatGoesTakesItsFramesAlongAndADialThatFailedIsItsMembers) {
  open();
  EXPECT_TRUE(tell(kA, gradient_of(kA, asked().second.lease), 7));
  EXPECT_EQ(courier.on_link_down({peer(kA), Session{}, PeerRole::kPeer}, now), session(kA));
  EXPECT_FALSE(courier.on_frames(remote_of(kA), 7, frames, now));
  EXPECT_EQ(written[EventKind::kHopTimer], 1u) << "the hop asks again";
}

TEST_F(NeighboursTest, RenewsItsClaimsAndATrainerTellsEveryMemberItsLowWaterMark) {
  serve({kA, kB});
  open();
  const Lease lease = asked().second.lease;
  courier.tick(now);
  auto renewals = take_out<Renew>();
  ASSERT_EQ(renewals.size(), 1u);
  EXPECT_EQ(renewals[0].first, session(kA));
  EXPECT_EQ(renewals[0].second.leases.at(0).lease, lease);
  EXPECT_TRUE(renewals[0].second.lows.empty());
  courier.tick(now += 600ms);
  EXPECT_TRUE(take_out<Renew>().empty()) << "a sixth of 4 s";
  courier.tick(now += 100ms, {{kTrainer, 5}});
  renewals = take_out<Renew>();
  ASSERT_EQ(renewals.size(), 3u);
  for (const auto& [to, renew] : renewals) EXPECT_EQ(renew.lows.at(0).low, 5u);
}

TEST_F(NeighboursTest, LinksAreMeasuredWhenAHopChoosesAndByNoTick) {
  for (int i = 0; i < 100; ++i) courier.tick(now += 50ms);
  EXPECT_EQ(measured, 0u);
  for (std::uint64_t serial = 0; serial < 10; ++serial) open(serial);
  EXPECT_EQ(measured, 3u) << "each link once, however many hops choose in a moment";
  now += Neighbours::kMeasurePeriod;
  open(10);
  EXPECT_EQ(measured, 6u);
}

class SilentPeerTest : public CourierRig {
 protected:
  SilentPeerTest() : CourierRig(make_rendezvous_policy()) {
    serve({kA, kB});
    for (const std::uint64_t tag : {kA, kB}) stats_of[peer(tag)] = {.up = true, .heard = now};
  }
  // A new hop and half a second, in which B answers what it is asked; how often `whom` was asked.
  int asked_of(std::uint64_t whom) {
    open(serial);
    int times = 0;
    for (int i = 0; i < 5; ++i) {
      stats_of[peer(kB)].heard = now += 100ms;
      for (const auto& [to, forward] : take_out<Forward>()) {
        times += to == session(whom);
        if (to == session(kB)) gradient(kB, forward.lease, forward.microbatch.serial);
      }
      tell(kB, Progress{});
      courier.tick(now);
    }
    ++serial;
    return times;
  }
  std::uint64_t serial = 0;
};

// A stopped process whose connection still stands. Its probes would be microbatches that wait a second each.
TEST_F(SilentPeerTest, GetsNoProbeUntilItIsHeardAgain) {
  for (int i = 0; i < 20 && asked_of(kA) == 0; ++i) continue;
  for (int i = 0; i < 3; ++i) asked_of(kB);
  EXPECT_GT(written[EventKind::kHopTimer], 0u) << "A was asked, and is suspected";
  int probes = 0;
  for (int i = 0; i < 20; ++i) probes += asked_of(kA);
  EXPECT_EQ(probes, 0);
  stats_of[peer(kA)].heard = now;
  for (int i = 0; i < 20 && probes == 0; ++i) probes += asked_of(kA);
  EXPECT_EQ(probes, 1);
}

}  // namespace
}  // namespace shoal
