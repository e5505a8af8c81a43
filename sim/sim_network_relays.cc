// The relays of a SimNetwork: hosts that register at them, calls, and what becomes of both when one ends.
#include <algorithm>
#include <utility>

#include "sim/sim_connection.h"

namespace shoal {

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

// Of all, or of one peer.
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
  if (listed_ && !listed_(caller, callee)) return "it is not on the list";
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
