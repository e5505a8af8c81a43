#pragma once
// The wire of a peer that is the product's but for its tongue: what it says goes through a function first.
#include <functional>
#include <memory>
#include <utility>

#include "sim/swarm.h"
#include "transport/envelope.h"
#include "transport/wire.h"

namespace shoal {

class LyingWire final : public Wire {
 public:
  // Changes the message. False: it is not sent.
  using Tongue = std::function<bool(Message&)>;

  LyingWire(std::unique_ptr<Wire> wire, Tongue tongue) : wire_(std::move(wire)), tongue_(std::move(tongue)) {}
  void set_listener(Listener* listener) override { wire_->set_listener(listener); }
  ConnectionId connect(const PeerId& peer, const Address& address) override { return wire_->connect(peer, address); }
  Status send(ConnectionId connection, Lane lane, Bytes message) override {
    if (lane == Lane::kControl)
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
  std::uint64_t bytes_sent() const override { return wire_->bytes_sent(); }
  RefusalCounts refusals() const override { return wire_->refusals(); }

 private:
  std::unique_ptr<Wire> wire_;
  Tongue tongue_;
};

// For SwarmOptions::wires: the peer `index` of a swarm with this seed lies, in every one of its sessions.
inline auto one_lies(std::uint64_t seed, std::size_t index, LyingWire::Tongue tongue) {
  return [liar = Swarm::peer_key(seed, index).id(), tongue = std::move(tongue)](
             const PeerId& peer, std::unique_ptr<Wire> wire) -> std::unique_ptr<Wire> {
    if (peer != liar) return wire;
    return std::make_unique<LyingWire>(std::move(wire), tongue);
  };
}

}  // namespace shoal
