#pragma once
// The wire of a peer that is the product's but for its tongue, and its ears: what it says goes through a function
// first, and what it hears through another.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "sim/swarm.h"
#include "transport/envelope.h"
#include "transport/wire.h"

namespace shoal {

class LyingWire final : public Wire, private Wire::Listener {
 public:
  // Changes the message. False: it is not sent.
  using Tongue = std::function<bool(Message&)>;
  // Changes what was heard before the product hears it. The answer, if any, goes back at once.
  using Ears = std::function<std::optional<Message>(Message&)>;

  LyingWire(std::unique_ptr<Wire> wire, Tongue tongue, Ears ears)
      : wire_(std::move(wire)), tongue_(std::move(tongue)), ears_(std::move(ears)) {}
  void set_listener(Wire::Listener* listener) override {
    listener_ = listener;
    wire_->set_listener(listener == nullptr ? nullptr : this);
  }
  ConnectionId connect(const PeerId& peer, const Address& address) override { return wire_->connect(peer, address); }
  Status send(ConnectionId connection, Lane lane, Bytes message) override {
    if (lane == Lane::kControl && tongue_)
      if (auto parsed = parse_envelope(message.view()); parsed.ok()) {
        if (!tongue_(parsed->message)) return {};
        SHOAL_ASSIGN(message, pack_envelope(parsed->message, parsed->transfer));
      }
    return wire_->send(connection, lane, std::move(message));
  }
  void disconnect(ConnectionId connection) override { wire_->disconnect(connection); }
  Status admit_only(const std::vector<PeerId>& peers) override { return wire_->admit_only(peers); }
  void favour(const std::vector<PeerId>& peers) override { wire_->favour(peers); }
  std::string other_host(ConnectionId connection) const override { return wire_->other_host(connection); }
  void be_called_at(const std::vector<Address>& relays) override { wire_->be_called_at(relays); }
  bool relayed(ConnectionId connection) const override { return wire_->relayed(connection); }
  std::uint64_t bytes_sent() const override { return wire_->bytes_sent(); }
  RefusalCounts refusals() const override { return wire_->refusals(); }

 private:
  void on_up(ConnectionId connection, const PeerId& peer, bool dialled) override {
    listener_->on_up(connection, peer, dialled);
  }
  void on_bytes(ConnectionId connection, Lane lane, Bytes message) override {
    if (lane == Lane::kControl && ears_)
      if (auto parsed = parse_envelope(message.view()); parsed.ok()) {
        if (const auto answer = ears_(parsed->message)) {
          EXPECT_TRUE(wire_->send(connection, lane, pack_envelope(*answer, std::nullopt).value()).ok());
        }
        message = pack_envelope(parsed->message, parsed->transfer).value();
      }
    listener_->on_bytes(connection, lane, std::move(message));
  }
  void on_writable(ConnectionId connection, Lane lane) override { listener_->on_writable(connection, lane); }
  void on_down(ConnectionId connection, const Error& cause) override { listener_->on_down(connection, cause); }

  std::unique_ptr<Wire> wire_;
  Wire::Listener* listener_ = nullptr;
  Tongue tongue_;
  Ears ears_;
};

// For SwarmOptions::wires: the peer `index` of a swarm with this seed lies, in every one of its sessions.
inline auto one_lies(std::uint64_t seed, std::size_t index, LyingWire::Tongue tongue, LyingWire::Ears ears = {}) {
  return [liar = Swarm::peer_key(seed, index).id(), tongue = std::move(tongue), ears = std::move(ears)](
             const PeerId& peer, std::unique_ptr<Wire> wire) -> std::unique_ptr<Wire> {
    if (peer != liar) return wire;
    return std::make_unique<LyingWire>(std::move(wire), tongue, ears);
  };
}

}  // namespace shoal
