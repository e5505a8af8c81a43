// A listed run: not only the launching process, its peers too let nobody else in.
#include <gtest/gtest.h>

#include "sim/swarm.h"
#include "transport/transport.h"

namespace shoal {
namespace {

// Who knows the run's name and a peer's address, and nothing else.
class Stranger final : private Transport::Listener {
 public:
  Stranger(Swarm& swarm, RunId run) : key_(KeyPair::from_seed({7, 7, 7})) {
    SimHost& host = swarm.network().add_host("stranger:1");
    wire_ = swarm.network().make_wire(key_.id(), "stranger:1");
    transport_ = make_transport(*wire_, host.loop(),
                                {run, key_.id(), Session::of(key_.id(), 1), PeerRole::kPeer, {"stranger:1"}});
    transport_->set_listener(this);
  }
  void ask_for_state(const PeerId& peer, const std::string& address, StateQuery query) {
    transport_->learn(peer, {address});
    EXPECT_TRUE(transport_->send(peer, query).ok());
  }
  const PeerId& id() const { return key_.id(); }

  std::size_t ups = 0, messages = 0;
  std::vector<Error> downs;

 private:
  void on_link_up(const Remote&) override { ++ups; }
  void on_link_down(const Remote&, const Error& cause) override { downs.push_back(cause); }
  void on_message(const Remote&, Message, TransferId, std::uint64_t) override { ++messages; }
  void on_frames(const Remote&, TransferId, Result<std::vector<Bytes>>) override {}

  KeyPair key_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Transport> transport_;
};

SwarmOptions options_for(bool listed) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 400);
  if (!listed) return options;
  options.config.admission.mode = AdmissionMode::kListed;
  for (std::size_t i = 0; i < std::size_t{options.stages} * options.replicas; ++i)
    options.config.admission.keys.push_back(Swarm::peer_key(options.seed, i).id());
  return options;
}

TEST(AdmissionTest, APeerOfAListedRunRefusesAStrangersKey) {
  for (const bool listed : {false, true}) {
    Swarm swarm(options_for(listed));
    swarm.run_for(8s);
    const auto& peer = *swarm.peers()[0];
    ASSERT_NE(peer.peer->stage_peer(), nullptr);
    Stranger stranger(swarm, swarm.launch()->authority().members().run);
    const auto held = peer.peer->held_state();
    ASSERT_TRUE(held.has_value()) << "no round yet: there is nothing to ask for";
    stranger.ask_for_state(peer.key.id(), peer.address, {held->first, held->second});
    swarm.run_for(1s);
    if (listed) {
      EXPECT_EQ(stranger.ups, 0u);
      EXPECT_EQ(stranger.messages, 0u);
      ASSERT_FALSE(stranger.downs.empty());
      EXPECT_EQ(stranger.downs[0].code, ErrorCode::kRefused);
      EXPECT_NE(stranger.downs[0].message.find(hex_of(stranger.id())), std::string::npos);
    } else {
      EXPECT_EQ(stranger.ups, 1u) << "else the listed run proves nothing";
      EXPECT_GT(stranger.messages, 0u);
    }
    ASSERT_TRUE(swarm.run_to_end(300s));
    EXPECT_EQ(swarm.summary().committed, 400u);
    EXPECT_EQ(swarm.summary().listed, 0u);
  }
}

// A peer listens before it knows what its run admits.
TEST(AdmissionTest, WhoConnectedBeforeTheManifestCameIsPutOut) {
  Swarm swarm(options_for(true));
  Stranger stranger(swarm, swarm.launch()->authority().members().run);
  const auto& peer = *swarm.peers()[0];
  swarm.network().partition("launch:1", peer.address);
  stranger.ask_for_state(peer.key.id(), peer.address, {});
  swarm.run_for(1s);
  ASSERT_EQ(stranger.ups, 1u);
  swarm.network().partition("launch:1", peer.address, false);
  swarm.run_for(8s);
  EXPECT_EQ(stranger.downs.size(), 1u);
  EXPECT_EQ(stranger.messages, 0u);
}

}  // namespace
}  // namespace shoal
