// Members that others cannot dial take part over links that they dial, and are told what their reach is.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "sim/swarm.h"

namespace shoal {
namespace {

// None: it is no member.
std::optional<Whereabouts> found_at(const Swarm& swarm, const PeerId& peer) {
  for (const StageMembers& stage : swarm.launch()->authority().members().stages)
    for (const Member& member : stage.members)
      if (member.peer == peer) return member.whereabouts;
  return std::nullopt;
}

std::size_t lines_with(const std::vector<std::string>& lines, const std::string& part) {
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

TEST(DialBackSwarmTest, APeerThatNobodyCanDialServesAndIsRaisedWhenItsPortIsOpen) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 3000);
  Swarm swarm(std::move(options));
  const std::string address = "peer6:1";
  swarm.network().nats().set(address, sim_firewall(true));
  const std::size_t joiner = swarm.add_peer();
  const auto& peer = *swarm.peers()[joiner];
  ASSERT_EQ(peer.address, address);
  swarm.run_for(20s);
  EXPECT_EQ(found_at(swarm, peer.key.id()), (Whereabouts{{}, Reach::kNone}));
  EXPECT_EQ(peer.peer->report().phase, PeerPhase::kServing);
  EXPECT_EQ(lines_with(peer.notices, "reach: none (nobody listens at " + address), 1u) << "told once";
  EXPECT_EQ(lines_with(peer.notices, "--advertise HOST:PORT"), 1u);
  EXPECT_EQ(lines_with(swarm.notices(), address), 1u);
  swarm.network().nats().set(address, {});
  swarm.network().cut(address, "launch:1");
  swarm.run_for(10s);
  EXPECT_EQ(found_at(swarm, peer.key.id()), (Whereabouts{{address}, Reach::kDirect}));
  EXPECT_EQ(lines_with(peer.notices, "reach: direct (" + address + ")"), 1u);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_FALSE(peer.error.has_value());
}

// Neither the trainer nor a peer can dial three of six.
TEST(DialBackSwarmTest, ASwarmTrainsInWhichOneOfEachStageCannotBeDialled) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 1500);
  Swarm swarm(std::move(options));
  for (std::size_t i = 3; i < 6; ++i) swarm.network().nats().set(swarm.peers()[i]->address, sim_firewall(true));
  swarm.run_for(10s);
  std::set<Session> undialled;
  for (const StageMembers& stage : swarm.launch()->authority().members().stages) {
    ASSERT_EQ(stage.members.size(), 2u);
    std::size_t none = 0;
    for (const Member& member : stage.members)
      if (member.whereabouts.reach == Reach::kNone) ++none, undialled.insert(member.session);
    ASSERT_EQ(none, 1u) << "this swarm is not the one of this test";
  }
  ASSERT_TRUE(swarm.run_to_end(300s));
  std::size_t asked = 0, asking = 0, between = 0;
  for (const SimEvent& event : swarm.events()) {
    if (event.event != EventKind::kForwardSent) continue;
    const bool from = undialled.contains(event.writer), to = undialled.contains(*event.about);
    (from && to ? between : from ? asking : asked) += from || to ? 1 : 0;
  }
  EXPECT_GT(asked, 100u);
  EXPECT_GT(asking, 100u);
  EXPECT_EQ(between, 0u) << "two that nobody can dial met";
  for (const auto& peer : swarm.peers()) EXPECT_FALSE(peer->error.has_value()) << peer->error->message;
}

// Nobody ends for want of reach, and nobody waits for it.
TEST(DialBackSwarmTest, AFencedPeerThatCannotBeDialledComesBack) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  swarm.run_for(5s);
  const auto& peer = *swarm.peers()[0];
  ASSERT_TRUE(found_at(swarm, peer.key.id()).has_value());
  swarm.freeze_peer(0);
  swarm.run_for(15s);
  ASSERT_FALSE(found_at(swarm, peer.key.id()).has_value());
  swarm.network().nats().set(peer.address, sim_firewall(true));
  swarm.resume_peer(0);
  swarm.run_for(20s);
  EXPECT_EQ(found_at(swarm, peer.key.id()), (Whereabouts{{}, Reach::kNone}));
  swarm.run_for(100s);
  EXPECT_FALSE(peer.finished);
}

}  // namespace
}  // namespace shoal
