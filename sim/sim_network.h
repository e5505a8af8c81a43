#pragma once
// A virtual network of hosts: latency, rates, loss of connections, partitions, killed and frozen hosts. Deterministic
// from its seed.
//
// A message leaves through its host's uplink (bulk messages queue behind each other, control messages have a small rate
// of their own), crosses in `latency` (+ jitter, never reordered within a lane), and arrives through the downlink of
// the other host. A lane whose receiver does not take its messages fills up and answers kBusy, as a TCP connection to a
// stopped process does.
//
// Thread: the simulation's.   Ownership: owns hosts; a SimWire is owned by its maker and may die before or after its
// host is killed.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/lifetime.h"
#include "common/rng.h"
#include "sim/sim_host.h"
#include "sim/sim_host_shape.h"
#include "sim/sim_nat.h"
#include "sim/sim_record.h"
#include "sim/sim_relays.h"
#include "transport/wire.h"

namespace shoal {

class SimWire;

class SimNetwork {
 public:
  SimNetwork(EventLoop& loop, Rng rng);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // A host at `address`; one that was killed there is followed by a new one. REQUIRES: no living host there.
  SimHost& add_host(const Address& address, SimHostShape shape = {});
  // The newest host there; made with the default shape when there was none.
  SimHost& host(const Address& address);
  void set_default_shape(SimHostShape shape) { default_shape_ = shape; }
  void set_shape(const Address& address, SimHostShape shape);

  // The wire of `peer` on the host at `address`; its callbacks run on host(address).loop(). One wire a host.
  // `admitted` empty: everyone. A peer that is not among them is refused by name.
  std::unique_ptr<Wire> make_wire(const PeerId& peer, const Address& address, std::set<PeerId> admitted = {});

  SimRelays& relays() { return relays_; }
  const SimRelays& relays() const { return relays_; }

  // ---- faults ----
  void freeze(const Address& address);
  void resume(const Address& address);
  // The process dies; its kernel closes its connections. With `machine` nobody is told: the others see silence.
  void kill(const Address& address, bool machine = false);
  // Breaks all connections between two hosts; both ends are told.
  void cut(const Address& a, const Address& b);
  // Which host can be dialled from where; a host stays behind what it is behind when its process ends.
  SimNats& nats() { return nats_; }
  const SimNats& nats() const { return nats_; }
  // The table of its router is gone: each connection of this host that crosses it is closed at both ends with `resets`;
  // else its bytes vanish, and each end finds out by itself.
  void flush(const Address& address, bool resets = false);
  // The router of its home has a new address: the connections of all its hosts are flushed. False: it is at no home.
  bool renumber(const Address& address);
  // While blocked nothing crosses from `from` to `to`; it waits, as TCP's retransmissions would. New connections time
  // out.
  void block(const Address& from, const Address& to, bool blocked = true);
  void partition(const Address& a, const Address& b, bool blocked = true);

  const SimRecord& record() const { return record_; }
  std::uint64_t connections() const { return connections_.size(); }
  // Called with every message that a wire accepts; to count, not to change.
  void set_watch(std::function<void(const Address& from, Lane lane, const Bytes& message)> watch) {
    watch_ = std::move(watch);
  }

 private:
  friend class SimRelays;
  friend class SimWire;
  struct Place;
  struct Pipe;
  struct Connection;

  ConnectionId connect(SimWire& from, const PeerId& peer, const Address& address);
  void establish(ConnectionId id, const PeerId& wanted);
  void greet(ConnectionId id, const PeerId& wanted);
  Status send(SimWire& from, ConnectionId id, Lane lane, Bytes message);
  void disconnect(SimWire& from, ConnectionId id);
  std::string other_host(const SimWire& at, ConnectionId id) const;
  void detach(SimWire& wire);
  void expel_strangers(SimWire& wire);  // what peers dialled that it does not admit any more
  void leave_uplink(ConnectionId id, int side, Lane lane, Bytes message);
  void arrive(ConnectionId id, int side, Lane lane, Bytes message);
  void deliver(ConnectionId id, int side, Lane lane);
  void tell_down(ConnectionId id, int side, Error cause, Duration delay);
  void break_connection(ConnectionId id, const Error& cause);
  Place& place(const Address& address);
  Connection* find(ConnectionId id);

  EventLoop& loop_;
  Rng rng_;
  SimHostShape default_shape_;
  std::map<Address, std::unique_ptr<Place>> places_;
  std::vector<std::unique_ptr<SimHost>> former_hosts_;  // killed; their loops may still be referred to
  std::map<ConnectionId, std::unique_ptr<Connection>> connections_;
  std::set<std::pair<Address, Address>> blocked_;
  SimNats nats_;
  SimRelays relays_{*this};
  ConnectionId next_ = 1;
  SimRecord record_{loop_};
  std::function<void(const Address&, Lane, const Bytes&)> watch_;
  Lifetime lifetime_;
};

}  // namespace shoal
