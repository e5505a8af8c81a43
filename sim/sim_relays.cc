#include "sim/sim_relays.h"

#include <algorithm>

#include "sim/sim_connection.h"

namespace shoal {

SimRelay* SimRelays::at(const Address& address) const {
  const auto found = relays_.find(address);
  return found == relays_.end() ? nullptr : found->second.get();
}

// ---- what becomes of them ----

void SimRelays::add(const Address& address, const Address& host, double bytes_per_second) {
  EventLoop& loop = network_.loop_;
  auto& entry = relays_[address];
  if (!entry) {
    const auto stands = [this](ConnectionId id) { return network_.find(id) != nullptr; };
    entry = std::make_unique<SimRelay>(loop, host, stands);
  }
  entry->begin(bytes_per_second);
  entry->set_frozen(network_.host(host).frozen());
  for (const auto& [at, place] : network_.places_) {
    const auto homes = homes_.find(place->wire);
    if (homes != homes_.end() && std::ranges::count(homes->second, address) > 0)
      entry->register_home(place->wire->self(), place->wire, loop.now() + SimRelay::kRegisterAgain);
  }
}

void SimRelays::end(const Address& address, bool silent) {
  SimRelay& ending = *relays_.at(address);
  ending.end();
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : network_.connections_)
    if (connection->relay == &ending) ids.push_back(id);
  for (const ConnectionId id : ids) {
    if (silent && network_.find(id)->up) {
      network_.find(id)->forgotten = true;
    } else {
      const std::string why = "the relay at " + address + " ended";
      network_.break_connection(id, make_error(ErrorCode::kUnreachable, why));
    }
  }
}

void SimRelays::set_frozen(const Address& host, bool frozen) {
  for (const auto& [at, relay] : relays_)
    if (relay->host() == host) relay->set_frozen(frozen);
}

void SimRelays::end_with(const Address& host, bool silent) {
  for (const auto& [at, relay] : relays_)
    if (relay->host() == host) end(at, silent);
}

// ---- registrations ----

void SimRelays::be_called_at(SimWire& wire, const std::vector<Address>& relays) {
  std::vector<Address>& homes = homes_[&wire];
  for (const Address& address : homes)
    if (SimRelay* left = at(address); left && std::ranges::count(relays, address) == 0) left->forget(&wire);
  homes = relays;
  for (const Address& address : relays) {
    SimRelay* home = at(address);
    if (!home || !home->lives()) continue;  // it is told of the wire when it begins
    const Duration leg =
        network_.place(wire.address()).shape.latency / 2 + network_.place(home->host()).shape.latency / 2;
    home->register_home(wire.self(), &wire, network_.loop_.now() + 5 * leg);  // TCP, the nonce, the signature
  }
  if (relays.empty()) homes_.erase(&wire);
}

// Its registrations went the way of its connections.
void SimRelays::break_homes(const Address& host, bool resets) {
  const SimWire* wire = network_.place(host).wire;
  const TimePoint again = network_.loop_.now() + (resets ? SimRelay::kRegisterAgain : SimRelay::kSilenceMax);
  for (const auto& [at, relay] : relays_) relay->break_home(wire, again);
}

// ---- calls ----

bool SimRelays::carries(ConnectionId id) const {
  const auto found = network_.connections_.find(id);
  return found != network_.connections_.end() && found->second->relay != nullptr;
}

// Pairs of all peers, or of one.
std::size_t SimRelays::pairs_of(const SimRelay& relay, const PeerId* peer) const {
  std::size_t pairs = 0;
  for (const auto& [id, connection] : network_.connections_) {
    if (connection->relay != &relay || connection->forgotten) continue;
    const auto of_it = [&](const auto* end) { return end->wire && peer && end->wire->self() == *peer; };
    pairs += peer == nullptr || of_it(connection->ends[0]) || of_it(connection->ends[1]);
  }
  return pairs;
}

// Empty: it passes the call on.
std::string SimRelays::refusal_of(const SimRelay* relay, const PeerId& caller, const PeerId& callee) const {
  if (!relay || !relay->lives()) return "nobody listens there";
  if (!joins(caller, callee)) return "it is not on the list";
  if (!relay->home_of(callee)) return "nobody is called so there";
  if (pairs_of(*relay, nullptr) >= SimRelay::kPairsMax) return "it joins too many";
  for (const PeerId& peer : {caller, callee})
    if (peer != open_ && pairs_of(*relay, &peer) >= SimRelay::kPairsOfPeerMax) return "it joins too many of one peer";
  return {};
}

// The callee answers over a connection of its own.
void SimRelays::call(ConnectionId id, const PeerId& callee) {
  auto& connection = *network_.find(id);
  const Address& address = connection.dialled;
  SimRelay* relay = at(address);
  const auto fail = [this, id, address](const std::string& why) {
    if (!network_.find(id)) return;
    network_.break_connection(id, make_error(ErrorCode::kUnreachable, "the relay at " + address + ": " + why));
  };
  if (const std::string why = refusal_of(relay, connection.wires[0]->self(), callee); !why.empty()) return fail(why);
  auto& to = network_.place(relay->home_of(callee)->address());
  connection.relay = relay;
  connection.relay_place = connection.ends[1];
  connection.ends[1] = &to;
  const auto& blocked = network_.blocked_;
  const bool answers = !relay->stalled() && !to.host->frozen() && !blocked.contains({relay->host(), to.address}) &&
                       !blocked.contains({to.address, relay->host()});
  EventLoop& loop = network_.loop_;
  if (!answers) return void(loop.after(SimRelay::kAnswerTime, [fail] { fail("the callee does not answer"); }));
  const Duration joined = 2 * connection.leg(0) + 4 * connection.leg(1) + connection.latency();
  loop.after(joined, [this, id, callee] { network_.greet(id, callee); });
}

}  // namespace shoal
