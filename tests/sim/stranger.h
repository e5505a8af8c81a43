#pragma once
// A stranger that knows the run's name and a process's address, and nothing else; or one that speaks with somebody
// else's key.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/swarm.h"
#include "transport/transport.h"

namespace shoal {

class Stranger final : private Transport::Listener {
 public:
  Stranger(Swarm& swarm, RunId run) : Stranger(swarm, run, KeyPair::from_seed({7, 7, 7}), 1, PeerRole::kPeer) {}
  Stranger(Swarm& swarm, RunId run, KeyPair key, std::uint64_t incarnation, PeerRole role) : key_(std::move(key)) {
    SimHost& host = swarm.network().add_host("stranger:1");
    wire_ = swarm.network().make_wire(key_.id(), "stranger:1");
    transport_ = std::make_unique<Transport>(
        *wire_, host.loop(),
        Transport::Options{run, key_.id(), Session::of(key_.id(), incarnation), role, {{"stranger:1"}}});
    transport_->set_listener(this);
  }
  void say(const PeerId& to, const std::string& address, Message message, std::vector<Bytes> frames = {}) {
    transport_->learn(to, {{address}});
    EXPECT_TRUE(transport_->send(to, std::move(message), std::move(frames)).ok());
  }
  const PeerId& id() const { return key_.id(); }
  LinkStats stats(const PeerId& to) const { return transport_->stats(to); }

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

}  // namespace shoal
