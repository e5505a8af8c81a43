// What strikes a SimNetwork: hosts that stop and die, connections that break, ways that are blocked, routers that
// forget.
#include <utility>

#include "sim/sim_connection.h"

namespace shoal {

void SimNetwork::freeze(const Address& address) {
  host(address).freeze();
  relays_.set_frozen(address, true);
}

void SimNetwork::resume(const Address& address) {
  host(address).resume();
  relays_.set_frozen(address, false);
}

void SimNetwork::kill(const Address& address, bool machine) {
  relays_.end_with(address, machine);
  Place& entry = place(address);
  entry.host->kill();
  SimWire* wire = entry.wire;
  entry.wire = nullptr;
  if (wire) relays_.be_called_at(*wire, {});
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
  relays_.break_homes(address, resets);
}

bool SimNetwork::renumber(const Address& address) {
  const std::string home = nats_.of(address).home;
  if (home.empty()) return false;
  for (const Address& host : nats_.hosts_of(home)) flush(host);
  nats_.renumber(home);
  return true;
}

void SimNetwork::block(const Address& from, const Address& to, bool blocked) {
  if (blocked) return void(blocked_.emplace(from, to));
  if (blocked_.erase({from, to}) == 0) return;
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) ids.push_back(id);
  for (const ConnectionId id : ids) {
    for (int side = 0; side < 2; ++side) {
      Connection* connection = find(id);
      if (!connection || connection->stopped(side, blocked_)) continue;
      for (auto& [lane, message] : std::exchange(connection->pipes[side][0].held, {}))
        arrive(id, side, lane, std::move(message));
      if (auto cause = std::exchange(connection->down_held[side], std::nullopt))
        tell_down(id, side, *cause, Duration::zero());
    }
  }
}

void SimNetwork::partition(const Address& a, const Address& b, bool blocked) {
  block(a, b, blocked);
  block(b, a, blocked);
}

}  // namespace shoal
