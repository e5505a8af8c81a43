#pragma once
// Wire over a SimNetwork. Made by SimNetwork::make_wire; see there for faults.
#include <memory>
#include <set>

#include "sim/sim_network.h"

namespace shoal {

// Thread: the simulation's.   Borrows: the network and the host, which outlive it.
class SimWire final : public Wire {
 public:
  SimWire(SimNetwork& network, SimHost& host, const PeerId& self, Address address, std::set<PeerId> admitted);
  ~SimWire() override;

  void set_listener(Wire::Listener* listener) override { state_->listener = listener; }
  ConnectionId connect(const PeerId& peer, const Address& address) override;
  Status send(ConnectionId connection, Lane lane, Bytes message) override;
  void disconnect(ConnectionId connection) override;
  Status admit_only(const std::vector<PeerId>& peers) override;
  std::string other_host(ConnectionId connection) const override { return network_.other_host(*this, connection); }
  void be_called_at(const std::vector<Address>& relays) override { network_.relays().be_called_at(*this, relays); }
  bool relayed(ConnectionId connection) const override { return network_.relays().carries(connection); }
  std::uint64_t bytes_sent() const override { return bytes_sent_; }

  SimHost& host() { return host_; }
  const PeerId& self() const { return self_; }
  const Address& address() const { return address_; }

 private:
  friend class SimNetwork;
  // Shared with calls under way on the host's loop, which may outlive the wire.
  struct State {
    Wire::Listener* listener = nullptr;
    std::set<ConnectionId> open;  // for which callbacks may come
  };
  // Runs `call` with the listener on the host's loop, unless the wire, the listener or the connection is gone by then.
  void notify(ConnectionId connection, std::function<void(Wire::Listener&)> call);
  void notify_down(ConnectionId connection, const Error& cause);

  SimNetwork& network_;
  SimHost& host_;
  PeerId self_;
  Address address_;
  std::set<PeerId> admitted_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace shoal
