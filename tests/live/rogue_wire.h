#pragma once
// The wire of shoal-rogue.
#include <memory>
#include <string>
#include <vector>

#include "transport/wire.h"

namespace shoal {

// Swallows what goes to the bulk lane.
class HeadersOnly final : public Wire {
 public:
  HeadersOnly(Wire& wire, bool mute) : wire_(wire), mute_(mute) {}
  void set_listener(Listener* listener) override { wire_.set_listener(listener); }
  ConnectionId connect(const PeerId& peer, const Address& address) override { return wire_.connect(peer, address); }
  Status send(ConnectionId connection, Lane lane, Bytes message) override {
    return mute_ && lane == Lane::kBulk ? Status() : wire_.send(connection, lane, std::move(message));
  }
  void disconnect(ConnectionId connection) override { wire_.disconnect(connection); }
  Status admit_only(const std::vector<PeerId>& peers) override { return wire_.admit_only(peers); }
  std::uint64_t bytes_sent() const override { return wire_.bytes_sent(); }

 private:
  Wire& wire_;
  bool mute_;
};

}  // namespace shoal
