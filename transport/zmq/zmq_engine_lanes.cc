// What happens to single connections on the wire's thread: dialling, greetings, messages, ends.
#include "common/os/tcp_place.h"
#include "transport/zmq/zmq_engine.h"

namespace shoal {
namespace {
constexpr Duration kRefusalTime = 200ms;

std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }
// Unique over both listeners.
std::string route_name(Lane lane, const std::string& route) { return (lane == Lane::kControl ? 'c' : 'b') + route; }
}  // namespace

ZmqEngine::Connection* ZmqEngine::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

// ---- we dial ----

void ZmqEngine::dial(const EngineCommand& command) {
  auto made = std::make_unique<Connection>();
  Connection& connection = *made;
  connection.id = command.connection;
  connection.peer = command.peer;
  connection.dialled = true;
  fill_randomly(connection.secret);
  auto target = parse_dial_address(command.address);
  connection.relayed = target.ok() && target->via;
  connection.deadline = now_ + connection.dial_time();
  connections_.emplace(command.connection, std::move(made));
  if (!target.ok()) return lose(command.connection, make_error(ErrorCode::kUnreachable, target.error().message));
  // libzmq would ask the name server on the one thread that moves the bytes of all connections.
  if (!target->control.is_literal())
    return lose(command.connection,
                make_error(ErrorCode::kUnreachable, command.address + " is a name; only IP addresses are dialled"));
  connection.target = *target;
  if (const Status room = room_for_dial(); !room.ok()) return lose(command.connection, room.error());
  target->via ? call_lane(connection, Lane::kControl) : dial_lane(connection, Lane::kControl, target->control);
}

std::string ZmqEngine::Connection::where() const {
  return relayed ? "peer " + short_name(peer) + " over relay " + target.control.text() : target.text();
}

void ZmqEngine::call_lane(Connection& connection, Lane lane) {
  const auto told = [this, id = connection.id, lane](const Result<HostPort>& door) {
    post({EngineCommand::Kind::kPipe, id, {}, {}, lane, {}, {}, door});
  };
  connection.lanes[index_of(lane)].pipe = pipes_.call(connection.peer, lane, connection.target.control, told);
}

void ZmqEngine::on_pipe(Connection& connection, Lane lane, const Result<HostPort>& door) {
  if (!door.ok()) return lose(connection.id, door.error());
  dial_lane(connection, lane, *door);
}

void ZmqEngine::dial_lane(Connection& connection, Lane lane, const HostPort& address) {
  const auto curve = curve_public_of(connection.peer);
  if (!curve.ok())
    return lose(connection.id,
                make_error(ErrorCode::kRefused, "peer " + short_name(connection.peer) + " has no usable key"));
  LaneEnd& end = connection.lanes[index_of(lane)];
  end.queue.push_back(pack_lane_greeting({lane, key_.id(), connection.secret}));
  const auto connected = [&]() -> Status {
    SHOAL_ASSIGN(end.dealer, ZmqSocket::make(context_, ZmqSocket::Kind::kDealer));
    end.dealer.configure(lane, key_, address.is_v6());
    end.dealer.expect_peer(*curve);
    SHOAL_TRY(end.dealer.start_monitor(context_, std::to_string(++monitors_)));
    return end.dealer.connect(address);
  }();
  if (!connected.ok())
    lose(connection.id,
         make_error(ErrorCode::kUnreachable, "cannot dial " + address.text() + ": " + connected.error().message));
}

void ZmqEngine::on_dialled_event(Connection& connection, Lane lane, const ZmqMonitorEvent& event) {
  LaneEnd& end = connection.lanes[index_of(lane)];
  const std::string where = connection.where();
  switch (event.kind) {
    case ZmqMonitorEvent::Kind::kConnected:
      end.fd = event.fd;
      dialled_watchdog_.opened(event.fd);
      if (const auto own = own_place(event.fd); end.pipe != 0 && own) pipes_.expect(end.pipe, own->port);
      return;
    case ZmqMonitorEvent::Kind::kKeyRefused:
      connection.failure = make_error(
          ErrorCode::kNotAdmitted,
          where + " does not admit this machine's key. HINT: ask the run's owner to add it to [admission] keys: " +
              hex_of(key_.id()));
      return;
    case ZmqMonitorEvent::Kind::kHandshakeFailed:
      if (connection.failure) return;
      connection.failure = make_error(
          connection.relayed ? ErrorCode::kUnreachable : ErrorCode::kRefused,  // a relay's doing is not theirs
          where + " broke off the key exchange: it is not peer " + short_name(connection.peer) +
              ", or too busy to finish it within " + std::to_string(limits::kGreetingTime / 1s) + " s");
      return;
    case ZmqMonitorEvent::Kind::kConnectFailed:
      if (end.fd < 0) lose(connection.id, make_error(ErrorCode::kUnreachable, "nobody listens at " + where));
      return;
    case ZmqMonitorEvent::Kind::kDisconnected: {
      dialled_watchdog_.closed(event.fd);
      end.fd = -1;
      // What came before the end is read first.
      const ConnectionId id = connection.id;
      connection.lanes[index_of(lane)].dealer.look();
      while (Connection* open = find(id)) {
        auto received = open->lanes[index_of(lane)].dealer.receive();
        if (!received) break;
        on_dialled_message(*open, lane, std::move(*received));
      }
      if (Connection* open = find(id))
        lose(id, open->failure.value_or(make_error(ErrorCode::kUnreachable, where + " closed the connection")));
      return;
    }
    default:
      return;
  }
}

void ZmqEngine::on_dialled_message(Connection& connection, Lane lane, ZmqReceived received) {
  LaneEnd& end = connection.lanes[index_of(lane)];
  if (!received.one_part)
    return refuse(connection, Refusal::kMessage, make_error(ErrorCode::kMalformed, "a message of several parts"));
  if (!end.answered) return on_answer(connection, lane, received.payload);
  dialled_watchdog_.message(end.fd, true);
  if (connection.up) return deliver_bytes(connection, lane, std::move(received.payload));
  if (connection.early.size() >= limits::kEarlyMessagesMax)
    return refuse(connection, Refusal::kMessage,
                  make_error(ErrorCode::kMalformed, "too many messages before the second lane"));
  connection.early.emplace_back(lane, std::move(received.payload));
}

void ZmqEngine::on_answer(Connection& connection, Lane lane, ByteView bytes) {
  const auto answer = parse_lane_answer(bytes);
  const std::string where = connection.where();
  if (!answer.ok())
    return lose(connection.id, make_error(answer.code(), where + " answers: " + answer.error().message));
  if (!answer->accepted)
    return lose(connection.id, make_error(ErrorCode::kRefused, where + " refused: " + answer->reason));
  if (answer->lane != lane) return lose(connection.id, make_error(ErrorCode::kMalformed, "answer for the other lane"));
  LaneEnd& end = connection.lanes[index_of(lane)];
  end.answered = true;
  dialled_watchdog_.message(end.fd, true);
  if (lane == Lane::kBulk) return come_up(connection);
  if (connection.relayed) return call_lane(connection, Lane::kBulk);
  const HostPort& control = connection.target.control;
  const std::uint16_t mapped = connection.target.bulk_port;
  dial_lane(connection, Lane::kBulk, {control.host, mapped != 0 ? mapped : answer->bulk_port});
}

// ---- they dial ----

void ZmqEngine::on_routed_message(Lane lane, ZmqReceived received) {
  const auto known = by_route_[index_of(lane)].find(received.route);
  if (known == by_route_[index_of(lane)].end()) {
    if (!buried_.holds(route_name(lane, received.route))) on_greeting(lane, received);
    return;
  }
  Connection& connection = *find(known->second);
  if (!received.one_part || received.user != connection.user) {
    return refuse(connection, Refusal::kMessage,
                  make_error(ErrorCode::kMalformed,
                             received.one_part ? "the key of a connection changed" : "a message of several parts"));
  }
  doorway_.message(lane, connection.lanes[index_of(lane)].fd);
  if (!connection.up)
    return refuse(connection, Refusal::kMessage, make_error(ErrorCode::kMalformed, "a message before the second lane"));
  deliver_bytes(connection, lane, std::move(received.payload));
}

void ZmqEngine::on_greeting(Lane lane, const ZmqReceived& received) {
  // Its descriptor may have been somebody else's until now: the end of that one is handled first.
  read_listener_monitor(lane, false);
  if (!received.one_part) return refuse_lane(lane, received, Refusal::kMessage, "a greeting of several parts");
  const auto greeting = parse_lane_greeting(received.payload);
  if (!greeting.ok()) {
    const bool version = greeting.code() == ErrorCode::kVersion;
    return refuse_lane(lane, received, version ? Refusal::kLaneVersion : Refusal::kGreeting, greeting.error().message);
  }
  if (greeting->lane != lane) return refuse_lane(lane, received, Refusal::kGreeting, "greeting for the other lane");
  const auto curve = curve_public_of(greeting->peer);
  if (!curve.ok() || hex_of_key(*curve) != received.user) {
    return refuse_lane(lane, received, Refusal::kForeignPeer,
                       "the key of this connection is not that of peer " + hex_of(greeting->peer));
  }
  // Asked again: its key may have passed before fewer were admitted.
  if (!keys_->admits(received.user))
    return refuse_lane(lane, received, Refusal::kKey, "this key is not admitted any more");
  doorway_.greeted(lane, received.fd);
  if (lane == Lane::kControl) {
    accept_control(*greeting, received);
  } else {
    accept_bulk(*greeting, received);
  }
}

void ZmqEngine::accept_control(const LaneGreeting& greeting, const ZmqReceived& received) {
  if (half_open_.size() >= limits::kHalfOpenMax || half_open_.contains({greeting.peer, greeting.secret})) {
    return refuse_lane(Lane::kControl, received, Refusal::kGreeting, "too many connections wait for their second lane");
  }
  auto made = std::make_unique<Connection>();
  Connection& connection = *made;
  connection.id = new_connection_id();
  connection.peer = greeting.peer;
  connection.user = received.user;
  connection.secret = greeting.secret;
  connection.relayed = !doorway_.relay_of(received.fd).empty();
  connection.deadline = now_ + connection.dial_time();
  LaneEnd& end = connection.lanes[0];
  end.route = received.route;
  end.fd = received.fd;
  end.queue.push_back(pack_lane_answer({Lane::kControl, true, bulk_port_, ""}));
  by_route_[0][received.route] = connection.id;
  by_fd_[0][received.fd] = connection.id;
  half_open_[{greeting.peer, greeting.secret}] = connection.id;
  connections_.emplace(connection.id, std::move(made));
  meet(connection);
}

void ZmqEngine::accept_bulk(const LaneGreeting& greeting, const ZmqReceived& received) {
  const auto waiting = half_open_.find({greeting.peer, greeting.secret});
  if (waiting == half_open_.end())
    return refuse_lane(Lane::kBulk, received, Refusal::kGreeting, "no control lane waits for this bulk lane");
  Connection& connection = *find(waiting->second);
  half_open_.erase(waiting);
  LaneEnd& end = connection.lanes[1];
  end.route = received.route;
  end.fd = received.fd;
  end.queue.push_back(pack_lane_answer({Lane::kBulk, true, 0, ""}));
  by_route_[1][received.route] = connection.id;
  by_fd_[1][received.fd] = connection.id;
  come_up(connection);
}

void ZmqEngine::refuse_lane(Lane lane, const ZmqReceived& received, Refusal cause, const std::string& reason) {
  if (!keys_->is_trial(received.user))
    refusals_.note(cause, remote_text(received.fd) + " with key " + received.user, reason);
  listener(lane).send(received.route, pack_lane_answer({lane, false, 0, reason}));
  buried_.bury(route_name(lane, received.route));
  doorway_.cut_at(now_ + kRefusalTime, lane, received.fd);
}

void ZmqEngine::review_keys() {
  std::vector<ConnectionId> strangers;
  for (const auto& [id, connection] : connections_)
    if (!connection->dialled && !keys_->admits(connection->user)) strangers.push_back(id);
  for (const ConnectionId id : strangers) lose(id, make_error(ErrorCode::kRefused, "its key is not admitted any more"));
}

// ---- both ----

void ZmqEngine::come_up(Connection& connection) {
  connection.up = true;
  EngineEvent event{EngineEvent::Kind::kUp,
                    connection.id,
                    Lane::kControl,
                    {},
                    nullptr,
                    connection.peer,
                    connection.dialled,
                    0,
                    std::nullopt};
  event.relayed = connection.relayed;
  const auto other = connection.dialled ? Result<HostPort>(connection.target.control)
                                        : parse_host_port(remote_text(connection.lanes[0].fd));
  if (other.ok() && !connection.relayed) event.host = other->host;
  events_.push_back(std::move(event));
  const ConnectionId id = connection.id;
  for (auto& [lane, bytes] : std::exchange(connection.early, {})) {
    if (Connection* open = find(id)) deliver_bytes(*open, lane, std::move(bytes));
  }
}

void ZmqEngine::deliver_bytes(Connection& connection, Lane lane, Bytes bytes) {
  const std::uint64_t cost = unread_cost(bytes.size());
  if (connection.unread->fetch_add(cost) + cost > limits::kUnreadBytesMax)
    return refuse(connection, Refusal::kFlood,
                  make_error(ErrorCode::kTooLarge, "sends faster than it is read, without regard to byte credits"));
  EngineEvent event{
      EngineEvent::Kind::kBytes, connection.id, lane, std::move(bytes), connection.unread, {}, false, 0, std::nullopt};
  events_.push_back(std::move(event));
}

bool ZmqEngine::flush_lane(Connection& connection, Lane lane) {
  LaneEnd& end = connection.lanes[index_of(lane)];
  ZmqSocket& socket = connection.dialled ? end.dealer : listener(lane);
  end.blocked = false;
  if (end.queue.empty() || !socket.open() || (!connection.dialled && end.route.empty())) return true;
  std::uint64_t left = 0;
  ZmqSend outcome = ZmqSend::kSent;
  while (!end.queue.empty()) {
    outcome = socket.send(end.route, end.queue.front());
    if (outcome != ZmqSend::kSent) break;
    const std::size_t bytes = end.queue.front().size();
    bytes_sent_ += bytes + zmq_overhead_bytes(bytes);
    left += bytes;
    end.queue.pop_front();
  }
  end.blocked = outcome == ZmqSend::kFull && !connection.dialled;
  if (left > 0 && connection.up) {
    EngineEvent event{EngineEvent::Kind::kSent, connection.id, lane, {}, nullptr, {}, false, left, std::nullopt};
    events_.push_back(std::move(event));
  }
  return outcome != ZmqSend::kGone;
}

void ZmqEngine::refuse(const Connection& connection, Refusal cause, const Error& error) {
  refusals_.note(cause, "peer " + short_name(connection.peer), error.message);
  lose(connection.id, error);
}

void ZmqEngine::lose(ConnectionId id, const Error& cause) {
  Connection* connection = find(id);
  if (!connection) return;
  if (connection->up || connection->dialled) {
    EngineEvent event{EngineEvent::Kind::kDown, id, Lane::kControl, {}, nullptr, {}, false, 0, cause};
    events_.push_back(std::move(event));
  }
  remove(id);
}

void ZmqEngine::remove(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  half_open_.erase({connection.peer, connection.secret});
  strangers_.leave(id);
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
    LaneEnd& end = connection.lanes[index_of(lane)];
    if (connection.dialled) {
      if (end.fd >= 0) dialled_watchdog_.closed(end.fd);
      if (end.pipe != 0 && !end.answered) pipes_.give_up(end.pipe);
      continue;
    }
    if (end.route.empty()) continue;
    by_route_[index_of(lane)].erase(end.route);
    buried_.bury(route_name(lane, end.route));
    const auto ours = by_fd_[index_of(lane)].find(end.fd);
    if (ours == by_fd_[index_of(lane)].end() || ours->second != id) continue;  // closed; its number may be another's
    by_fd_[index_of(lane)].erase(ours);
    doorway_.cut(lane, end.fd);
  }
  connections_.erase(found);
}

}  // namespace shoal
