// A launching process whose manifest is not what the run's key signed: the peer ends and says so by name.
#include <gtest/gtest.h>

#include "sim/swarm.h"
#include "transport/transport.h"

namespace shoal {
namespace {

// Speaks with the run's key at the launching process's address, and answers every question with one manifest.
class FalseLaunch final : private Transport::Listener {
 public:
  FalseLaunch(Swarm& swarm, Manifest manifest) : manifest_(std::move(manifest)) {
    SimHost& host = swarm.network().add_host("launch:1");
    const KeyPair& key = swarm.run_key();
    wire_ = swarm.network().make_wire(key.id(), "launch:1");
    transport_ = std::make_unique<Transport>(
        *wire_, host.loop(),
        Transport::Options{
            RunId{key.id().bytes}, key.id(), Session::of(key.id(), 1), PeerRole::kTrainer, {{"launch:1"}}});
    transport_->set_listener(this);
  }
  std::size_t asked = 0;

 private:
  void on_link_up(const Remote&) override {}
  void on_link_down(const Remote&, const Error&) override {}
  void on_message(const Remote& from, Message message, TransferId, std::uint64_t) override {
    if (!std::holds_alternative<ManifestQuery>(message)) return;
    ++asked;
    EXPECT_TRUE(transport_->send(from.peer, manifest_).ok());
  }
  void on_frames(const Remote&, TransferId, Result<std::vector<Bytes>>) override {}

  Manifest manifest_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Transport> transport_;
};

class ManifestTest : public testing::Test {
 protected:
  ManifestTest() {
    options.config = small_config(RuleId::kDiloco, options.stages, 64);
    swarm.emplace(options);
    good.body = canonical_text(options.config).value();
    good.signature = sign(good.body);
  }
  std::vector<std::uint8_t> sign(const std::string& body) const {
    const Signature signature =
        swarm->run_key().sign({reinterpret_cast<const std::uint8_t*>(body.data()), body.size()});
    return {signature.begin(), signature.end()};
  }
  // What the first peer ends with when it is given this manifest.
  std::optional<Error> error_of(const Manifest& manifest) {
    swarm->kill_launch();
    const FalseLaunch launch(*swarm, manifest);
    swarm->restart_peer(0);
    swarm->run_for(5s);
    EXPECT_GT(launch.asked, 0u) << "else it proves nothing";
    return swarm->peers()[0]->error;
  }

  SwarmOptions options;
  std::optional<Swarm> swarm;
  Manifest good;
};

TEST_F(ManifestTest, TheOneThatWasSignedIsTaken) { EXPECT_FALSE(error_of(good).has_value()); }

TEST_F(ManifestTest, OneBitOfItChangedIsNamed) {
  Manifest damaged = good;
  damaged.body[damaged.body.size() / 2] = static_cast<char>(damaged.body[damaged.body.size() / 2] ^ 1);
  const auto error = error_of(damaged);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kCorrupt);
  EXPECT_NE(error->message.find("was not signed by the run's key"), std::string::npos) << error->message;
}

TEST_F(ManifestTest, OneSignedByAnotherKeyIsNamed) {
  Manifest forged = good;
  const Signature signature =
      KeyPair::generate().sign({reinterpret_cast<const std::uint8_t*>(forged.body.data()), forged.body.size()});
  forged.signature.assign(signature.begin(), signature.end());
  const auto error = error_of(forged);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kCorrupt);
  EXPECT_NE(error->message.find("was not signed by the run's key"), std::string::npos) << error->message;
}

TEST_F(ManifestTest, OneWithoutASignatureIsNamed) {
  Manifest bare = good;
  bare.signature.resize(10);
  const auto error = error_of(bare);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kCorrupt);
  EXPECT_NE(error->message.find("carries no signature"), std::string::npos) << error->message;
}

TEST_F(ManifestTest, OneThatIsSignedAndNoConfigurationIsRefusedToo) {
  Manifest nonsense = good;
  nonsense.body = "[run]\nname = 5\n";
  nonsense.signature = sign(nonsense.body);
  EXPECT_TRUE(error_of(nonsense).has_value());
}

}  // namespace
}  // namespace shoal
