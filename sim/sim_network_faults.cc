// What strikes a SimNetwork: hosts that stop and die, connections that break, ways that are blocked, routers that
// forget. And its relays: hosts that register at them, calls, and what becomes of both when one ends.
#include <algorithm>
#include <utility>

#include "sim/sim_connection.h"

namespace shoal {

void SimNetwork::freeze(const Address& address) {
  host(address).freeze();
  for (const auto& [at, relay] : relays_)
    if (relay->host() == address) relay->set_frozen(true);
}

void SimNetwork::resume(const Address& address) {
  host(address).resume();
  for (const auto& [at, relay] : relays_)
    if (relay->host() == address) relay->set_frozen(false);
}

void SimNetwork::kill(const Address& address, bool machine) {
  for (const auto& [at, relay] : relays_)
    if (relay->host() == address) end_relay(at, machine);
  Place& entry = place(address);
  entry.host->kill();
  SimWire* wire = entry.wire;
  entry.wire = nullptr;
  if (wire) be_called_at(*wire, {});
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    if (wire && (connection->wires[0] == wire || connection->wires[1] == wire)) ids.push_back(id);
  }
  for (const ConnectionId id : ids) {
    if (!machine) {
      disconnect(*wire, id);
    } else if (Connection* connection = find(id)) {
      connection->wires[connection->wires[0] == wire ? 0 : 1] = nullptr;
    }
  }
}

void SimNetwork::cut(const Address& a, const Address& b) {
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    const Address &from = connection->ends[0]->address, &to = connection->ends[1]->address;
    if (connection->up && ((from == a && to == b) || (from == b && to == a))) ids.push_back(id);
  }
  for (const ConnectionId id : ids)
    break_connection(id, make_error(ErrorCode::kUnreachable, "the connection was lost"));
}

void SimNetwork::flush(const Address& address, bool resets) {
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    const bool its = connection->ends[0]->address == address || connection->ends[1]->address == address;
    if (connection->up && its && !connection->route.inside) ids.push_back(id);
  }
  for (const ConnectionId id : ids) {
    if (resets) {
      break_connection(id, make_error(ErrorCode::kUnreachable, "a router broke the connection"));
    } else {
      find(id)->forgotten = true;
    }
  }
  break_homes(address, resets);
}

bool SimNetwork::renumber(const Address& address) {
  const std::string home = nats_.of(address).home;
  if (home.empty()) return false;
  for (const Address& host : nats_.hosts_of(home)) flush(host);
  nats_.renumber(home);
  return true;
}

void SimNetwork::block(const Address& from, const Address& to, bool blocked) {
  if (blocked) {
    blocked_.emplace(from, to);
  } else if (blocked_.erase({from, to}) > 0) {
    release_blocked();
  }
}

void SimNetwork::partition(const Address& a, const Address& b, bool blocked) {
  block(a, b, blocked);
  block(b, a, blocked);
}

bool SimNetwork::stopped(const Connection& connection, int side) const {
  const Address &from = connection.ends[1 - side]->address, &to = connection.ends[side]->address;
  if (!connection.relay) return blocked_.contains({from, to});
  const Address& relay = connection.relay->host();
  return blocked_.contains({from, relay}) || blocked_.contains({relay, to});
}

void SimNetwork::release_blocked() {
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) ids.push_back(id);
  for (const ConnectionId id : ids) {
    for (int side = 0; side < 2; ++side) {
      Connection* connection = find(id);
      if (!connection || stopped(*connection, side)) continue;
      for (auto& [lane, message] : std::exchange(connection->pipes[side][0].held, {}))
        arrive(id, side, lane, std::move(message));
      if (auto cause = std::exchange(connection->down_held[side], std::nullopt))
        tell_down(id, side, *cause, Duration::zero());
    }
  }
}

// ---- relays ----

void SimNetwork::add_relay(const Address& address, const Address& host, double bytes_per_second) {
  auto& entry = relays_[address];
  if (!entry) entry = std::make_unique<SimRelay>(loop_, host, [this](ConnectionId id) { return find(id) != nullptr; });
  entry->begin(bytes_per_second);
  entry->set_frozen(this->host(host).frozen());
  for (const auto& [at, place] : places_)
    if (place->wire && std::ranges::count(place->wire->homes_, address) > 0)
      entry->register_home(place->wire->self(), place->wire, loop_.now() + SimRelay::kRegisterAgain);
}

void SimNetwork::end_relay(const Address& address, bool silent) {
  SimRelay& ending = *relays_.at(address);
  ending.end();
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_)
    if (connection->relay == &ending) ids.push_back(id);
  for (const ConnectionId id : ids) {
    if (silent && find(id)->up) {
      find(id)->forgotten = true;
    } else {
      break_connection(id, make_error(ErrorCode::kUnreachable, "the relay at " + address + " ended"));
    }
  }
}

SimRelay* SimNetwork::relay(const Address& address) {
  const auto found = relays_.find(address);
  return found == relays_.end() ? nullptr : found->second.get();
}

void SimNetwork::be_called_at(SimWire& wire, const std::vector<Address>& relays) {
  for (const Address& address : wire.homes_)
    if (SimRelay* left = relay(address); left && std::ranges::count(relays, address) == 0) left->forget(&wire);
  wire.homes_ = relays;
  for (const Address& address : relays) {
    SimRelay* home = relay(address);
    if (!home || !home->lives()) continue;  // it is told of the wire when it begins
    const Duration leg = place(wire.address()).shape.latency / 2 + place(home->host()).shape.latency / 2;
    home->register_home(wire.self(), &wire, loop_.now() + 5 * leg);  // TCP, the nonce, the signature
  }
}

// Its registrations went the way of its connections.
void SimNetwork::break_homes(const Address& host, bool resets) {
  const SimWire* wire = place(host).wire;
  const TimePoint again = loop_.now() + (resets ? SimRelay::kRegisterAgain : SimRelay::kSilenceMax);
  for (const auto& [at, relay] : relays_) relay->break_home(wire, again);
}

bool SimNetwork::relayed(ConnectionId id) const {
  const auto found = connections_.find(id);
  return found != connections_.end() && found->second->relay != nullptr;
}

// Pairs of all peers, or of one.
std::size_t SimNetwork::pairs_of(const SimRelay& relay, const PeerId* peer) const {
  std::size_t pairs = 0;
  for (const auto& [id, connection] : connections_) {
    if (connection->relay != &relay || connection->forgotten) continue;
    const auto of_it = [&](const Place* end) { return end->wire && peer && end->wire->self() == *peer; };
    pairs += peer == nullptr || of_it(connection->ends[0]) || of_it(connection->ends[1]);
  }
  return pairs;
}

// Empty: it passes the call on.
std::string SimNetwork::refusal_of(const Connection& connection, const SimRelay* relay, const PeerId& callee) const {
  const PeerId caller = connection.wires[0]->self();
  if (!relay || !relay->lives()) return "nobody listens there";
  if (on_list_ && !on_list_(caller, callee)) return "it is not on the list";
  if (!relay->home_of(callee)) return "nobody is called so there";
  if (pairs_of(*relay, nullptr) >= SimRelay::kPairsMax) return "it joins too many";
  for (const PeerId& peer : {caller, callee})
    if (peer != open_ && pairs_of(*relay, &peer) >= SimRelay::kPairsOfPeerMax) return "it joins too many of one peer";
  return {};
}

// The relay was reached: it passes the call on, and the callee answers over a connection of its own.
void SimNetwork::call(ConnectionId id, const PeerId& callee) {
  Connection& connection = *find(id);
  const Address& address = connection.dialled;
  SimRelay* relay = this->relay(address);
  const auto fail = [this, id, address](const std::string& why) {
    if (find(id)) break_connection(id, make_error(ErrorCode::kUnreachable, "the relay at " + address + ": " + why));
  };
  if (const std::string why = refusal_of(connection, relay, callee); !why.empty()) return fail(why);
  Place& to = place(relay->home_of(callee)->address());
  connection.relay = relay;
  connection.relay_place = connection.ends[1];
  connection.ends[1] = &to;
  const bool answers = !relay->stalled() && !to.host->frozen() && !blocked_.contains({relay->host(), to.address}) &&
                       !blocked_.contains({to.address, relay->host()});
  if (!answers) return void(loop_.after(SimRelay::kAnswerTime, [fail] { fail("the callee does not answer"); }));
  const Duration joined = 2 * connection.leg(0) + 4 * connection.leg(1) + connection.latency();
  loop_.after(joined, [this, id, callee] { greet(id, callee); });
}

}  // namespace shoal
