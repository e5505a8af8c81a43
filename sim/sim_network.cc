#include "sim/sim_network.h"

#include <algorithm>

#include "sim/sim_connection.h"

namespace shoal {
namespace {
constexpr std::uint64_t kLaneBytesMax[2] = {4u << 20,
                                            8u << 20};  // not taken by the receiver yet: socket buffers of both ends
constexpr Duration kConnectTimeout = 5s;
constexpr std::uint64_t kHeaderBytes = 64;  // of every message, on the line
constexpr std::string_view kVia = "via/";

Duration time_for(std::uint64_t bytes, double bytes_per_second) {
  return bytes_per_second <= 0 ? Duration::zero() : from_seconds(static_cast<double>(bytes) / bytes_per_second);
}
// Takes the line after those who took it before; returns when the last byte is through.
TimePoint take_line(TimePoint& free_at, TimePoint now, Duration time) {
  return free_at = std::max(free_at, now) + time;
}

}  // namespace

SimNetwork::SimNetwork(EventLoop& loop, Rng rng) : loop_(loop), rng_(rng) {}
SimNetwork::~SimNetwork() = default;

SimNetwork::Place& SimNetwork::place(const Address& address) {
  auto& entry = places_[address];
  if (!entry) {
    entry = std::make_unique<Place>();
    entry->address = address;
    entry->shape = default_shape_;
  }
  if (!entry->host) entry->host = std::make_unique<SimHost>(loop_, address);
  return *entry;
}

SimHost& SimNetwork::host(const Address& address) { return *place(address).host; }

SimHost& SimNetwork::add_host(const Address& address, SimHostShape shape) {
  Place& entry = place(address);
  entry.shape = shape;
  SHOAL_CHECK(entry.wire == nullptr || entry.host->killed());
  if (entry.host->killed()) {
    former_hosts_.push_back(std::move(entry.host));
    entry.wire = nullptr;
    entry.host = std::make_unique<SimHost>(loop_, address);
  }
  return *entry.host;
}

void SimNetwork::set_shape(const Address& address, SimHostShape shape) { place(address).shape = shape; }

std::unique_ptr<Wire> SimNetwork::make_wire(const PeerId& peer, const Address& address, std::set<PeerId> admitted) {
  if (const auto found = places_.find(address); found != places_.end() && found->second->host->killed())
    add_host(address, found->second->shape);
  Place& entry = place(address);
  SHOAL_CHECK(entry.wire == nullptr);
  auto wire = std::make_unique<SimWire>(*this, *entry.host, peer, address, std::move(admitted));
  entry.wire = wire.get();
  return wire;
}

SimNetwork::Connection* SimNetwork::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

// ---- connections ----

ConnectionId SimNetwork::connect(SimWire& from, const PeerId& peer, const Address& address) {
  const ConnectionId id = next_++;
  auto connection = std::make_unique<Connection>();
  connection->via = address.starts_with(kVia);
  const Address dialled = connection->via ? address.substr(kVia.size()) : address;
  const SimRelay* relay = connection->via ? relays_.at(dialled) : nullptr;
  connection->dialled = dialled;
  connection->route = nats_.route(from.address(), dialled);
  connection->ends = {&place(from.address()), &place(relay ? relay->host() : connection->route.to)};
  connection->wires[0] = &from;
  const Duration round_trips = 4 * connection->latency();  // TCP, then the key exchange
  connections_.emplace(id, std::move(connection));
  record_.dialled(id);
  loop_.after(round_trips, [this, id, peer] { establish(id, peer); });
  return id;
}

void SimNetwork::establish(ConnectionId id, const PeerId& wanted) {
  Connection* connection = find(id);
  if (!connection) return;                                         // given up meanwhile
  if (!connection->wires[0]) return void(connections_.erase(id));  // the dialler's machine died
  const Address& from = connection->ends[0]->address;
  Place& to = *connection->ends[1];
  const Address dialled = connection->dialled;
  const SimNats::Answer answer = nats_.answer(from, dialled, connection->route);
  // A stopped process accepts nothing: the kernel does, but the key exchange waits for it.
  if (blocked_.contains({from, to.address}) || blocked_.contains({to.address, from}) || to.host->frozen() ||
      answer == SimNats::Answer::kSilent) {
    loop_.after(kConnectTimeout, [this, id, address = dialled] {
      if (find(id)) break_connection(id, make_error(ErrorCode::kTimeout, address + " does not answer"));
    });
    return;
  }
  if (answer == SimNats::Answer::kRefused)
    return break_connection(id, make_error(ErrorCode::kUnreachable, "nobody listens at " + dialled));
  connection->via ? relays_.call(id, wanted) : greet(id, wanted);
}

// The other end is reached: the keys are exchanged.
void SimNetwork::greet(ConnectionId id, const PeerId& wanted) {
  Connection* connection = find(id);
  if (!connection) return;
  if (!connection->wires[0]) return void(connections_.erase(id));
  const Address& from = connection->ends[0]->address;
  Place& to = *connection->ends[1];
  const Address dialled = connection->dialled;
  if (!to.wire || to.host->killed())
    return break_connection(id, make_error(ErrorCode::kUnreachable, "nobody listens at " + dialled));
  if (connection->relay && !relays_.joins(connection->wires[0]->self(), wanted))  // it left while it was called
    return break_connection(id, make_error(ErrorCode::kUnreachable, "the relay at " + dialled + " lists it no more"));
  const SimWire& dialler = *connection->wires[0];
  if (to.wire->self() != wanted)
    return break_connection(id, make_error(ErrorCode::kRefused, dialled + " is not peer " + short_name(wanted)));
  if (!to.wire->admitted_.empty() && !to.wire->admitted_.contains(dialler.self())) {
    const std::string why = dialled + " does not admit this key: " + hex_of(dialler.self());
    return break_connection(id, make_error(ErrorCode::kNotAdmitted, why));
  }
  connection->up = true;
  connection->wires[1] = to.wire;
  if (connection->relay) {
    relays_.note_joined({dialled, dialler.self(), wanted});
  } else {
    nats_.note_answered(from, to.address);
  }
  record_.up(id);
  const PeerId from_peer = dialler.self(), to_peer = to.wire->self();
  connection->wires[1]->state_->open.insert(id);
  connection->wires[0]->notify(id, [id, to_peer](Wire::Listener& listener) { listener.on_up(id, to_peer, true); });
  connection->wires[1]->notify(id, [id, from_peer](Wire::Listener& listener) { listener.on_up(id, from_peer, false); });
}

void SimNetwork::disconnect(SimWire& from, ConnectionId id) {
  Connection* connection = find(id);
  if (!connection) return;
  const int side = connection->wires[0] == &from ? 0 : 1;
  if (connection->wires[side] != &from) return;
  connection->wires[side] = nullptr;
  if (!connection->up || !connection->wires[1 - side]) return void(connections_.erase(id));
  if (connection->forgotten) return;
  tell_down(id, 1 - side, make_error(ErrorCode::kUnreachable, "the other end closed the connection"),
            connection->latency());
}

void SimNetwork::detach(SimWire& wire) {
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    if (connection->wires[0] == &wire || connection->wires[1] == &wire) ids.push_back(id);
  }
  for (const ConnectionId id : ids) disconnect(wire, id);
  if (const auto found = places_.find(wire.address()); found != places_.end() && found->second->wire == &wire)
    found->second->wire = nullptr;
  relays_.be_called_at(wire, {});
}

void SimNetwork::expel_strangers(SimWire& wire) {
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    const SimWire* dialler = connection->wires[0];
    if (connection->wires[1] == &wire && dialler && !wire.admitted_.contains(dialler->self())) ids.push_back(id);
  }
  for (const ConnectionId id : ids) {
    wire.notify_down(id, make_error(ErrorCode::kRefused, "its key is not admitted any more"));
    disconnect(wire, id);
  }
}

// The end at `side` learns that the connection is gone, after what was under way to it.
void SimNetwork::tell_down(ConnectionId id, int side, Error cause, Duration delay) {
  Connection& connection = *find(id);
  if (connection.stopped(side, blocked_)) {
    connection.down_held[side] = std::move(cause);
    return;
  }
  TimePoint when = loop_.now() + delay;
  for (const Pipe& pipe : connection.pipes[side]) when = std::max(when, pipe.last_arrival);
  const auto tell = [this, id, side, cause] {
    Connection* gone = find(id);
    if (!gone || gone->forgotten) return;
    SimWire* wire = gone->wires[side];
    connections_.erase(id);
    record_.down(id, cause.code);
    if (wire) wire->notify_down(id, cause);
  };
  if (!connection.relay) return void(loop_.at(when, tell));
  loop_.at(when, [this, relay = connection.relay, id, side, tell] {
    relay->carry(id, 1 - side, Lane::kControl, kHeaderBytes, tell);
  });
}

void SimNetwork::break_connection(ConnectionId id, const Error& cause) {
  Connection& connection = *find(id);
  const auto wires = connection.wires;
  connections_.erase(id);
  record_.down(id, cause.code);
  for (SimWire* wire : wires) {
    if (wire) wire->notify_down(id, cause);
  }
}

// ---- messages ----

Status SimNetwork::send(SimWire& from, ConnectionId id, Lane lane, Bytes message) {
  Connection* connection = find(id);
  if (!connection || !connection->up) return make_error(ErrorCode::kUnreachable, "no such connection");
  const int side = connection->wires[0] == &from ? 0 : 1;
  if (connection->wires[side] != &from) return make_error(ErrorCode::kUnreachable, "no such connection");
  Pipe& pipe = connection->pipes[1 - side][static_cast<std::size_t>(lane)];
  if (pipe.outstanding > 0 && pipe.outstanding + message.size() > kLaneBytesMax[static_cast<std::size_t>(lane)]) {
    pipe.was_busy = true;
    record_.busy(id, message.size());
    return make_error(ErrorCode::kBusy, "the lane is full");
  }
  pipe.outstanding += message.size();
  if (watch_) watch_(from.address(), lane, message);
  leave_uplink(id, side, lane, std::move(message));
  return Status::success();
}

void SimNetwork::leave_uplink(ConnectionId id, int side, Lane lane, Bytes message) {
  Connection& connection = *find(id);
  Place& sender = *connection.ends[side];
  Pipe& pipe = connection.pipes[1 - side][static_cast<std::size_t>(lane)];
  const std::uint64_t bytes = message.size() + kHeaderBytes;
  TimePoint sent = loop_.now();
  if (lane == Lane::kControl) {
    sent = take_line(sender.control_free, sent, time_for(bytes, sender.shape.control_bytes_per_second));
  } else {
    sent = take_line(sender.up_free, sent, time_for(bytes, sender.shape.up_bytes_per_second));
  }
  const TimePoint arrival = sent + connection.leg(side) + delay_of(sender.shape, rng_, id, side, lane);
  pipe.last_arrival = std::max(pipe.last_arrival, arrival);
  const bool again = lane == Lane::kControl && sender.shape.repeat_share > 0 && rng_.chance(sender.shape.repeat_share);
  if (again) pipe.outstanding += message.size();
  auto arrives = [this, id, side, lane, again, message = disturbed(sender.shape, rng_, std::move(message))] {
    for (int copy = 0; copy <= (again ? 1 : 0); ++copy) arrive(id, 1 - side, lane, message);
  };
  if (!connection.relay) return void(loop_.at(pipe.last_arrival, std::move(arrives)));
  loop_.at(pipe.last_arrival, [this, id, side, lane, bytes, relay = connection.relay, onward = connection.leg(1 - side),
                               arrives = std::move(arrives)] {
    relay->carry(id, side, lane, bytes, [this, onward, arrives] { loop_.after(onward, arrives); });
  });
}

void SimNetwork::arrive(ConnectionId id, int side, Lane lane, Bytes message) {
  Connection* connection = find(id);
  if (!connection || connection->forgotten) return;
  if (connection->stopped(side, blocked_)) {
    connection->pipes[side][0].held.emplace_back(lane, std::move(message));
    return;
  }
  Place& receiver = *connection->ends[side];
  Pipe& pipe = connection->pipes[side][static_cast<std::size_t>(lane)];
  TimePoint through = loop_.now();
  if (lane == Lane::kBulk)
    through = take_line(receiver.down_free, through,
                        time_for(message.size() + kHeaderBytes, receiver.shape.down_bytes_per_second));
  pipe.last_arrival = std::max(pipe.last_arrival, through);
  pipe.arrived.push_back(std::move(message));
  loop_.at(through, [this, id, side, lane] { deliver(id, side, lane); });
}

// The host's loop takes the message when it runs; until then it counts against the lane.
void SimNetwork::deliver(ConnectionId id, int side, Lane lane) {
  Connection* connection = find(id);
  if (!connection || !connection->wires[side]) return;
  Pipe& pipe = connection->pipes[side][static_cast<std::size_t>(lane)];
  Bytes message = std::move(pipe.arrived.front());
  pipe.arrived.pop_front();
  record_.bytes(id, lane, message.size());
  connection->wires[side]->notify(
      id, lifetime_.guard([this, id, side, lane, message = std::move(message)](Wire::Listener& listener) {
        if (Connection* open = find(id)) {
          Pipe& taken = open->pipes[side][static_cast<std::size_t>(lane)];
          taken.outstanding -= message.size();
          if (taken.was_busy && taken.outstanding <= kLaneBytesMax[static_cast<std::size_t>(lane)] / 2) {
            taken.was_busy = false;
            SimWire* sender = open->wires[1 - side];
            if (sender) sender->notify(id, [id, lane](Wire::Listener& other) { other.on_writable(id, lane); });
          }
        }
        listener.on_bytes(id, lane, message);
      }));
}

std::string SimNetwork::other_host(const SimWire& at, ConnectionId id) const {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return {};
  const Connection& connection = *found->second;
  if (connection.relay) return {};  // what a relay says of a caller proves nothing
  const Address& other = connection.ends[connection.wires[0] == &at ? 1 : 0]->address;
  if (!connection.route.inside) return nats_.outer_host(other);
  const Address& inner = nats_.of(other).inner;
  return inner.substr(0, inner.rfind(':'));
}

}  // namespace shoal
