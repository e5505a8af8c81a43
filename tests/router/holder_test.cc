// What a holder adds to its courier: who may speak, whose link a session is on, frames that are awaited, renewals.
#include "router/holder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "names.h"

namespace shoal {
namespace {

using namespace naming;

// The holder is session 1, the authority's key is 9, peers of the next stage are 10 and 11.
class HolderTest : public testing::Test, private HolderPort, private Links {
 protected:
  static constexpr std::uint64_t kSelf = 1, kAuthority = 9, kA = 10, kB = 11;

  static Remote remote_of(std::uint64_t tag) { return {peer(tag), session(tag), PeerRole::kPeer}; }
  void list(const std::vector<std::uint64_t>& tags) {
    MemberList list;
    list.epoch = Epoch(++epoch);
    StageMembers& members = list.stages.emplace_back();
    members.stage = StageId(1);
    for (const std::uint64_t tag : tags) members.members.push_back(member(tag));
    holder.on_members(list, now);
  }
  // Opens the hop of microbatch 0; the claim that asks `kA`.
  Lease open() {
    list({kA});
    HopSpec spec;
    spec.microbatch = id(0);
    spec.to = StageId(1);
    spec.above = {session(kSelf)};
    holder.open(std::move(spec), now);
    return std::get<Forward>(sent.at(0).second).lease;
  }
  Gradient gradient(const Lease& lease) {
    Gradient message;
    message.lease = lease;
    message.microbatch = id(0);
    message.path = {entry_name(kA, 1)};
    return message;
  }
  template <class T>
  std::vector<std::pair<PeerId, T>> told() {
    std::vector<std::pair<PeerId, T>> result;
    for (const auto& [to, message] : sent)
      if (const T* m = std::get_if<T>(&message)) result.emplace_back(to, *m);
    return result;
  }

  std::uint64_t epoch = 0;
  TimePoint now = at(0s);
  std::vector<std::pair<PeerId, Message>> sent;
  std::vector<TransferId> refused;
  mutable std::size_t measured = 0;  // links
  std::map<PeerId, LinkStats> stats_of;
  std::vector<Gradient> won;
  std::vector<Low> marks;
  std::optional<Remote> answers;  // whose session is at the other end of every link; none: unknown
  Holder holder{holder_port(), links(), options()};

 private:
  HolderPort& holder_port() { return *this; }
  Links& links() { return *this; }
  static HolderOptions options() {
    HolderOptions result;
    result.self = session(kSelf);
    result.ahead = StageId(1);
    result.authority = peer(kAuthority);
    return result;
  }
  std::vector<Low> lows() override { return marks; }
  std::vector<Bytes> frames_of(const Session&, const Forward&, bool) override { return std::vector<Bytes>(1); }
  void on_branch(const MicrobatchId&, const Session&, const Lease&, BranchEnd) override {}
  void on_won(const MicrobatchId&, const Gradient& gradient, std::vector<Bytes>) override { won.push_back(gradient); }
  void on_parked(const MicrobatchId&, StageId, bool) override {}
  void write(const EventRecord&) override {}
  void learn(const PeerId&, std::vector<std::string>) override {}
  Result<TransferId> send(const PeerId& to, Message message, std::vector<Bytes> frames) override {
    sent.emplace_back(to, std::move(message));
    return frames.empty() ? 0 : 5;
  }
  void drop(const PeerId&, TransferId) override {}
  void refuse(const PeerId&, TransferId transfer) override { refused.push_back(transfer); }
  std::optional<Remote> remote(const PeerId&) const override { return answers; }
  LinkStats stats(const PeerId& to) const override {
    ++measured;
    const auto at = stats_of.find(to);
    return at == stats_of.end() ? LinkStats{} : at->second;
  }
};

TEST_F(HolderTest, AdmitsTheAuthorityAndMembersUnderTheirOwnKey) {
  list({kA});
  EXPECT_TRUE(holder.admits(remote_of(kA)));
  EXPECT_TRUE(holder.admits(remote_of(kAuthority)));
  EXPECT_FALSE(holder.admits(remote_of(kB)));
  EXPECT_FALSE(holder.admits({peer(kB), session(kA), PeerRole::kPeer})) << "a member's session under another key";
  list({kB});
  EXPECT_FALSE(holder.admits(remote_of(kA))) << "its session is over";
}

TEST_F(HolderTest, SpeaksToMembersAndToTheAuthorityThatItHeardOf) {
  list({kA});
  EXPECT_EQ(holder.send_to(session(kAuthority), Gone{}, {}).code(), ErrorCode::kUnreachable);
  holder.on_link_up(remote_of(kAuthority), now);
  EXPECT_TRUE(holder.send_to(session(kAuthority), Gone{}, {}).ok());
  EXPECT_TRUE(holder.send_to(session(kA), Gone{}, {}).ok());
  EXPECT_EQ(holder.send_to(session(kB), Gone{}, {}).code(), ErrorCode::kUnreachable);
  answers = {peer(kA), Session{kA, 2}, PeerRole::kPeer};
  EXPECT_EQ(holder.send_to(session(kA), Gone{}, {}).code(), ErrorCode::kStale) << "a younger session answers there";
}

TEST_F(HolderTest, AGradientWinsWhenItsFramesAreHere) {
  const Lease lease = open();
  EXPECT_TRUE(holder.on_message(remote_of(kA), gradient(lease), 7, now));
  EXPECT_TRUE(won.empty());
  Result<std::vector<Bytes>> frames = std::vector<Bytes>(1);
  EXPECT_FALSE(holder.on_frames(remote_of(kB), 7, frames, now)) << "a transfer is one link's";
  EXPECT_TRUE(holder.on_frames(remote_of(kA), 7, frames, now));
  EXPECT_EQ(won.size(), 1u);
  EXPECT_FALSE(holder.on_frames(remote_of(kA), 7, frames, now)) << "once";
}

TEST_F(HolderTest, AGradientWhoseFramesDoNotComeIsGoneAndAnotherPeerIsAsked) {
  const Lease lease = open();
  list({kA, kB});
  EXPECT_TRUE(holder.on_message(remote_of(kA), gradient(lease), 7, now));
  Result<std::vector<Bytes>> frames = make_error(ErrorCode::kUnreachable, "dropped");
  EXPECT_TRUE(holder.on_frames(remote_of(kA), 7, frames, now));
  EXPECT_TRUE(won.empty());
  EXPECT_EQ(holder.courier().counters().gone, 1u);
  EXPECT_EQ(told<Forward>().size(), 2u);
}

TEST_F(HolderTest, FramesThatNobodyWantsAreRefused) {
  open();
  EXPECT_TRUE(holder.on_message(remote_of(kA), gradient(lease(kSelf, 99)), 7, now));
  EXPECT_EQ(refused, std::vector<TransferId>{7});
}

TEST_F(HolderTest, ALinkThatGoesTakesItsFramesAlongAndADialThatFailedIsItsMembers) {
  const Lease lease = open();
  EXPECT_TRUE(holder.on_message(remote_of(kA), gradient(lease), 7, now));
  EXPECT_EQ(holder.on_link_down({peer(kA), Session{}, PeerRole::kPeer}, now), session(kA));
  Result<std::vector<Bytes>> frames = std::vector<Bytes>(1);
  EXPECT_FALSE(holder.on_frames(remote_of(kA), 7, frames, now));
  EXPECT_EQ(holder.courier().counters().timers, 1u) << "the hop asks again";
}

TEST_F(HolderTest, RenewsItsClaimsAndATrainerTellsEveryMemberItsLowWaterMark) {
  const Lease lease = open();
  list({kA, kB});
  holder.tick(now);
  ASSERT_EQ(told<Renew>().size(), 1u);
  EXPECT_EQ(told<Renew>()[0].first, peer(kA));
  EXPECT_EQ(told<Renew>()[0].second.leases.at(0).lease, lease);
  EXPECT_TRUE(told<Renew>()[0].second.lows.empty());
  holder.tick(now += 600ms);
  EXPECT_EQ(told<Renew>().size(), 1u) << "a sixth of 4 s";
  marks = {{kTrainer, 5}};
  holder.tick(now += 100ms);
  const auto all = told<Renew>();
  ASSERT_EQ(all.size(), 3u);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_EQ(all[i].second.lows.at(0).low, 5u);
}

TEST_F(HolderTest, LinksAreMeasuredWhenAHopChoosesAndByNoTick) {
  list({kA, kB});
  for (int i = 0; i < 100; ++i) holder.tick(now += 50ms);
  EXPECT_EQ(measured, 0u);
  HopSpec spec;
  spec.to = StageId(1);
  spec.above = {session(kSelf)};
  for (std::uint64_t serial = 0; serial < 10; ++serial) {
    spec.microbatch = id(serial);
    holder.open(spec, now);
  }
  EXPECT_EQ(measured, 2u) << "each link once, however many hops choose in a moment";
  spec.microbatch = id(10);
  holder.open(spec, now += Holder::kMeasurePeriod);
  EXPECT_EQ(measured, 4u);
}

// A stopped process whose connection still stands. Its probes would be microbatches that wait a second each.
TEST_F(HolderTest, APeerThatFellSilentGetsNoProbeUntilItIsHeardAgain) {
  list({kA, kB});
  for (const std::uint64_t tag : {kA, kB}) stats_of[peer(tag)] = {.up = true, .heard = now};
  std::uint64_t serial = 0;
  std::set<Lease> answered;
  // A new hop and half a second, in which B answers what it is asked; how often `whom` was asked.
  const auto asked = [&](std::uint64_t whom) {
    sent.clear();
    HopSpec spec;
    spec.to = StageId(1);
    spec.above = {session(kSelf)};
    spec.microbatch = id(serial);
    spec.sample = SampleId(serial++);
    holder.open(spec, now);
    for (int i = 0; i < 5; ++i) {
      stats_of[peer(kB)].heard = now += 100ms;
      for (const auto& [to, forward] : told<Forward>()) {
        if (to != peer(kB) || !answered.insert(forward.lease).second) continue;
        Gradient message = gradient(forward.lease);
        message.microbatch = forward.microbatch;
        message.path = {entry_name(kB, serial)};
        holder.on_message(remote_of(kB), message, 0, now);
      }
      holder.on_message(remote_of(kB), Progress{}, 0, now);
      holder.tick(now);
    }
    const auto forwards = told<Forward>();
    return std::count_if(forwards.begin(), forwards.end(), [&](const auto& to) { return to.first == peer(whom); });
  };
  for (int i = 0; i < 20 && asked(kA) == 0; ++i) continue;
  for (int i = 0; i < 3; ++i) asked(kB);
  EXPECT_GT(holder.courier().counters().timers, 0u) << "A was asked, and is suspected";
  int probes = 0;
  for (int i = 0; i < 20; ++i) probes += static_cast<int>(asked(kA));
  EXPECT_EQ(probes, 0);
  stats_of[peer(kA)].heard = now;
  for (int i = 0; i < 20 && probes == 0; ++i) probes += static_cast<int>(asked(kA));
  EXPECT_EQ(probes, 1);
}

// How far the run is, a COMMIT that is passed on does not say: whoever got it would believe a neighbour.
TEST_F(HolderTest, HowFarTheRunIsRisesOnlyAndIsNotPassedOn) {
  list({kA});
  holder.note_run(100, 2.5);
  holder.note_run(90, 9.0);
  EXPECT_EQ(holder.run_targets(), 100u);
  EXPECT_EQ(holder.run_loss(), 2.5);
  holder.send(session(kA), Commit{});
  ASSERT_EQ(told<Commit>().size(), 1u);
  EXPECT_EQ(told<Commit>()[0].second.run_targets, 0u);
}

}  // namespace
}  // namespace shoal
