// A run with keys: not only the launching process, its peers too let nobody else in.
#include <gtest/gtest.h>

#include "tests/sim/stranger.h"

namespace shoal {
namespace {

SwarmOptions options_for(bool admitted) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 400);
  if (!admitted) return options;
  options.config.admission.mode = AdmissionMode::kKeys;
  for (std::size_t i = 0; i < std::size_t{options.stages} * options.replicas; ++i)
    options.config.admission.keys.push_back(Swarm::peer_key(options.seed, i).id());
  return options;
}

TEST(AdmissionTest, APeerOfARunWithKeysRefusesAStrangersKey) {
  for (const bool admitted : {false, true}) {
    Swarm swarm(options_for(admitted));
    swarm.run_for(8s);
    const auto& peer = *swarm.peers()[0];
    ASSERT_NE(peer.peer->stage_peer(), nullptr);
    Stranger stranger(swarm, swarm.launch()->authority().members().run);
    const auto held = peer.peer->held_state();
    ASSERT_TRUE(held.has_value()) << "no round yet: there is nothing to ask for";
    stranger.say(peer.key.id(), peer.address, StateQuery{held->first, held->second});
    swarm.run_for(1s);
    if (admitted) {
      EXPECT_EQ(stranger.ups, 0u);
      EXPECT_EQ(stranger.messages, 0u);
      ASSERT_FALSE(stranger.downs.empty());
      EXPECT_EQ(stranger.downs[0].code, ErrorCode::kNotAdmitted);
      EXPECT_NE(stranger.downs[0].message.find(hex_of(stranger.id())), std::string::npos);
    } else {
      EXPECT_EQ(stranger.ups, 1u) << "else the run with keys proves nothing";
      EXPECT_GT(stranger.messages, 0u);
    }
    ASSERT_TRUE(swarm.run_to_end(300s));
    EXPECT_EQ(swarm.summary().committed, 400u);
    EXPECT_EQ(swarm.summary().lost, 0u);
  }
}

// A peer listens before it knows what its run admits.
TEST(AdmissionTest, WhoConnectedBeforeTheManifestCameIsPutOut) {
  Swarm swarm(options_for(true));
  const auto& peer = *swarm.peers()[0];
  swarm.network().partition("launch:1", peer.address);
  swarm.run_for(500ms);  // by then the launching process knows its run
  Stranger stranger(swarm, swarm.launch()->authority().members().run);
  stranger.say(peer.key.id(), peer.address, StateQuery{});
  swarm.run_for(1s);
  ASSERT_EQ(stranger.ups, 1u);
  swarm.network().partition("launch:1", peer.address, false);
  swarm.run_for(8s);
  EXPECT_EQ(stranger.downs.size(), 1u);
  EXPECT_EQ(stranger.messages, 0u);
}

}  // namespace
}  // namespace shoal
