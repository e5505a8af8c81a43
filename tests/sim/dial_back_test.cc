// A joiner that others cannot dial is told so and admitted as soon as they can.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/swarm.h"

namespace shoal {
namespace {

bool is_member(const Swarm& swarm, const PeerId& peer) {
  for (const StageMembers& stage : swarm.launch()->authority().members().stages)
    for (const Member& member : stage.members)
      if (member.peer == peer) return true;
  return false;
}

std::size_t lines_with(const std::vector<std::string>& lines, const std::string& part) {
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

TEST(DialBackSwarmTest, APeerThatNobodyCanDialIsNoMemberUntilItsPortIsOpen) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 1500);
  Swarm swarm(std::move(options));
  const std::string address = "peer6:1";
  swarm.network().close_listener(address);
  const std::size_t joiner = swarm.add_peer();
  ASSERT_EQ(swarm.peers()[joiner]->address, address);
  const PeerId peer = swarm.peers()[joiner]->key.id();
  swarm.run_for(20s);
  EXPECT_FALSE(is_member(swarm, peer));
  const auto& notices = swarm.peers()[joiner]->notices;
  EXPECT_EQ(lines_with(notices, "cannot be dialled: nobody listens at " + address), 1u)
      << "told once, not at every try";
  EXPECT_EQ(lines_with(notices, "--advertise HOST:PORT"), 1u);
  EXPECT_EQ(lines_with(swarm.notices(), address), 1u);
  swarm.network().close_listener(address, false);
  swarm.run_for(10s);
  EXPECT_TRUE(is_member(swarm, peer));
  EXPECT_EQ(swarm.peers()[joiner]->peer->report().phase, PeerPhase::kServing);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_FALSE(swarm.peers()[joiner]->error.has_value());
}

TEST(DialBackSwarmTest, ANewcomerGivesUpAfterItsPatience) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  swarm.network().close_listener("peer6:1");
  const auto& joiner = *swarm.peers()[swarm.add_peer()];
  swarm.run_for(59s);
  EXPECT_FALSE(joiner.finished);
  swarm.run_for(5s);
  ASSERT_TRUE(joiner.finished && joiner.error.has_value());
  EXPECT_EQ(joiner.error->code, ErrorCode::kUnreachable);
  EXPECT_NE(joiner.error->message.find("HINT: --advertise"), std::string::npos) << joiner.error->message;
}

TEST(DialBackSwarmTest, WhoWasNeverAdmittedIsNotDoneWhenTheRunEnds) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  swarm.network().close_listener("peer6:1");
  const auto& joiner = *swarm.peers()[swarm.add_peer()];
  swarm.run_for(10s);
  swarm.finish_launch("enough");
  ASSERT_TRUE(swarm.run_to_end(60s));
  ASSERT_TRUE(joiner.finished && joiner.error.has_value());
  EXPECT_EQ(joiner.error->code, ErrorCode::kGone);
  EXPECT_NE(joiner.error->message.find("never admitted"), std::string::npos) << joiner.error->message;
  EXPECT_FALSE(swarm.peers()[0]->error.has_value()) << "a member's end is a good one";
}

// A peer that served keeps its state for longer than a newcomer's patience.
TEST(DialBackSwarmTest, AFencedPeerThatCannotBeDialledWaits) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  swarm.run_for(5s);
  const auto& peer = *swarm.peers()[0];
  ASSERT_TRUE(is_member(swarm, peer.key.id()));
  swarm.freeze_peer(0);
  swarm.run_for(15s);
  ASSERT_FALSE(is_member(swarm, peer.key.id()));
  swarm.network().close_listener(peer.address);
  swarm.resume_peer(0);
  swarm.run_for(150s);
  EXPECT_FALSE(peer.finished);
  EXPECT_FALSE(is_member(swarm, peer.key.id()));
  swarm.network().close_listener(peer.address, false);
  swarm.run_for(10s);
  EXPECT_TRUE(is_member(swarm, peer.key.id()));
}

}  // namespace
}  // namespace shoal
