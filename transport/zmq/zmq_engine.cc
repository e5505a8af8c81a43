#include "transport/zmq/zmq_engine.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "common/os/thread_loop.h"
#include "common/rng.h"
#include "transport/zmq/lasting_ports.h"

namespace shoal {
namespace {
constexpr std::size_t kMessagesPerTurn = 256;
constexpr int kListenAttempts = 8;
constexpr Lane kLanes[] = {Lane::kControl, Lane::kBulk};
}  // namespace

ZmqEngine::ZmqEngine(KeyPair key, const RunId& run, std::shared_ptr<KeyCheck> keys,
                     std::function<void(std::vector<EngineEvent>)> deliver)
    : key_(std::move(key)),
      keys_(std::move(keys)),
      deliver_(std::move(deliver)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      pipes_(key_, run, bounds_.called) {
  SHOAL_CHECK(wake_.get() >= 0);
}

ZmqEngine::~ZmqEngine() {
  stopping_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

Status ZmqEngine::listen(const HostPort& address) {
  // The key check stands before the first socket that could ask it.
  SHOAL_ASSIGN(key_checks_, ZmqSocket::make(context_, ZmqSocket::Kind::kReply));
  key_checks_.bind_inproc("zeromq.zap.01");
  if (address.port != 0) return listen_at(address, 1);
  Rng rng(entropy_seed());
  const PortRange ephemeral = ephemeral_ports();
  for (int attempt = 1;; ++attempt) {  // another process may take a pair between its draw and here
    SHOAL_ASSIGN(const std::uint16_t port, draw_port_pair(rng, ephemeral));
    const Status status = listen_at({address.host, port}, attempt);
    if (status.ok() || status.code() != ErrorCode::kBusy || attempt == kListenAttempts) return status;
  }
}

Status ZmqEngine::listen_at(const HostPort& address, int attempt) {
  HostPort next = address;
  for (const Lane lane : kLanes) {
    ZmqSocket& socket = listener(lane);
    SHOAL_ASSIGN(socket, ZmqSocket::make(context_, ZmqSocket::Kind::kRouter));
    socket.configure(lane, key_, address.is_v6());
    socket.listen_securely();
    // libzmq closes what an attempt left behind in its own time.
    SHOAL_TRY(
        socket.start_monitor(context_, (lane == Lane::kControl ? "control-" : "bulk-") + std::to_string(attempt)));
    SHOAL_TRY(socket.bind(next));
    if (lane == Lane::kControl) listening_at_ = socket.bound_to();
    ++next.port;
  }
  bulk_port_ = listener(Lane::kBulk).bound_to().port;
  return Status::success();
}

std::optional<PipeDesk::Listeners> ZmqEngine::listeners_beside() const {
  if (!listening_at_) return std::nullopt;
  HostPort beside = *listening_at_;
  if (beside.host == "0.0.0.0") beside.host = "127.0.0.1";
  if (beside.host == "::") beside.host = "::1";
  return PipeDesk::Listeners{beside, HostPort{beside.host, bulk_port_}};
}

void ZmqEngine::start() {
  thread_ = std::thread([this] { run(); });
}

void ZmqEngine::post(EngineCommand command) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = commands_.empty();
    commands_.push_back(std::move(command));
  }
  const std::uint64_t one = 1;
  if (first) (void)!::write(wake_.get(), &one, sizeof one);
}

void ZmqEngine::run() {
  pthread_setname_np(pthread_self(), "wire");  // seen in top and in profiles
  while (!stopping_) {
    wait();
    now_ = monotonic_now();
    run_commands();
    if (key_checks_.open()) answer_key_checks();
    read_listeners(kMessagesPerTurn);
    read_dialled();
    read_monitors();
    flush();
    check_deadlines();
    if (!events_.empty()) deliver_(std::exchange(events_, {}));
  }
  connections_.clear();
}

void ZmqEngine::wait() {
  std::vector<ZmqWaiting> sockets;
  if (key_checks_.open()) {
    sockets.push_back({&key_checks_, false});
    for (const Lane lane : kLanes) sockets.push_back({&listener(lane), false});
  }
  bool dialling = false;
  for (const auto& [id, connection] : connections_) {
    dialling |= !connection->up;
    if (!connection->dialled) continue;
    for (LaneEnd& lane : connection->lanes) {
      if (lane.dealer.open()) sockets.push_back({&lane.dealer, !lane.queue.empty()});
    }
  }
  Duration timeout = 1s;
  if (dialling || !dialled_watchdog_.idle() || doorway_.has_times()) timeout = ByteWatchdog::kPeriod;
  if (any_blocked_) timeout = 1ms;  // a ROUTER does not say which of its peers has room again
  zmq_wait(sockets, wake_.get(), timeout);
}

void ZmqEngine::run_commands() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  std::vector<EngineCommand> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (EngineCommand& command : commands) {
    if (command.kind == EngineCommand::Kind::kConnect) {
      dial(command);
    } else if (command.kind == EngineCommand::Kind::kReviewKeys) {
      review_keys();
    } else if (command.kind == EngineCommand::Kind::kFavour) {
      favour(command.favoured);
    } else if (Connection* connection = find(command.connection); !connection) {
      continue;  // it went down meanwhile; the loop hears of it
    } else if (command.kind == EngineCommand::Kind::kPipe) {
      on_pipe(*connection, command.lane, *command.door);
    } else if (command.kind == EngineCommand::Kind::kSend) {
      connection->lanes[static_cast<std::size_t>(command.lane)].queue.push_back(std::move(command.bytes));
    } else {
      flush_lane(*connection, Lane::kControl);
      remove(command.connection);
    }
  }
}

void ZmqEngine::answer_key_checks() {
  while (const auto request = key_checks_.receive_parts()) {
    const KeyCheck::Answer answer = keys_->answer(*request);
    if (!answer.admitted && !keys_->is_trial(answer.key))
      refusals_.note(Refusal::kKey, answer.address, "its key " + answer.key + " is not admitted");
    key_checks_.send_parts(answer.parts);
  }
}

void ZmqEngine::read_listeners(std::size_t messages_max) {
  if (!key_checks_.open()) return;
  for (const Lane lane : kLanes) read_listener(lane, messages_max);
}

void ZmqEngine::read_listener(Lane lane, std::size_t messages_max) {
  for (std::size_t i = 0; i < messages_max; ++i) {
    auto received = listener(lane).receive();
    if (!received) return;
    on_routed_message(lane, std::move(*received));
  }
}

void ZmqEngine::read_dialled() {
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    if (connection->dialled) ids.push_back(id);
  }
  for (const ConnectionId id : ids) {
    for (const Lane lane : kLanes) {
      for (std::size_t i = 0; i < kMessagesPerTurn; ++i) {
        Connection* connection = find(id);
        if (!connection || !connection->lanes[static_cast<std::size_t>(lane)].dealer.open()) break;
        auto received = connection->lanes[static_cast<std::size_t>(lane)].dealer.receive();
        if (!received) break;
        on_dialled_message(*connection, lane, std::move(*received));
      }
    }
  }
}

void ZmqEngine::read_monitors() {
  if (key_checks_.open()) {
    for (const Lane lane : kLanes) read_listener_monitor(lane, true);
  }
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    if (connection->dialled) ids.push_back(id);
  }
  for (const ConnectionId id : ids) {
    for (const Lane lane : kLanes) {
      for (;;) {
        Connection* connection = find(id);
        if (!connection) break;
        const auto event = connection->lanes[static_cast<std::size_t>(lane)].dealer.monitor_event();
        if (!event) break;
        on_dialled_event(*connection, lane, *event);
      }
    }
  }
}

void ZmqEngine::read_tail() {
  for (const Lane lane : kLanes) {
    listener(lane).look();
    read_listener(lane, limits::kTailMessagesMax);
  }
}

// `read_first`: what a connection sent before it closed is read before its end is believed.
void ZmqEngine::read_listener_monitor(Lane lane, bool read_first) {
  while (const auto event = listener(lane).monitor_event()) {
    if (event->kind == ZmqMonitorEvent::Kind::kAccepted) doorway_.opened(lane, event->fd, now_);
    if (event->kind == ZmqMonitorEvent::Kind::kHandshakeFailed)
      refusals_.note(Refusal::kKeyExchange, "somebody", "a connection that did not complete the key exchange");
    if (event->kind != ZmqMonitorEvent::Kind::kDisconnected) continue;
    const std::optional<ConnectionId> ended = release_descriptor(lane, event->fd);
    if (read_first) read_tail();
    const Error cause = make_error(ErrorCode::kUnreachable, "the other end closed the connection");
    if (ended) lose(*ended, cause);
    if (doorway_.holds(lane, event->fd)) continue;  // the next one's by now
    if (const auto in_the_tail = release_descriptor(lane, event->fd)) lose(*in_the_tail, cause);  // greeted and went
  }
}

// A descriptor's number is the next connection's as soon as this one is closed, and the tail may hold that one's
// greeting: so all that goes by the number is settled before. The connection that had it, if it was greeted, stands
// without a descriptor until it is lost.
std::optional<ConnectionId> ZmqEngine::release_descriptor(Lane lane, int fd) {
  const auto index = static_cast<std::size_t>(lane);
  doorway_.closed(lane, fd);
  const auto found = by_fd_[index].find(fd);
  if (found == by_fd_[index].end()) return std::nullopt;
  const ConnectionId id = found->second;
  by_fd_[index].erase(found);
  find(id)->lanes[index].fd = -1;
  return id;
}

void ZmqEngine::flush() {
  any_blocked_ = false;
  std::vector<ConnectionId> gone;
  for (const auto& [id, connection] : connections_) {
    for (const Lane lane : kLanes) {
      if (!flush_lane(*connection, lane)) gone.push_back(id);
      any_blocked_ |= connection->lanes[static_cast<std::size_t>(lane)].blocked;
    }
  }
  for (const ConnectionId id : gone) lose(id, make_error(ErrorCode::kUnreachable, "the connection was lost"));
}

void ZmqEngine::check_deadlines() {
  std::vector<ConnectionId> late;
  for (const auto& [id, connection] : connections_) {
    if (!connection->up && now_ >= connection->deadline) late.push_back(id);
  }
  for (const ConnectionId id : late) {
    const Connection& connection = *find(id);
    lose(id, make_error(ErrorCode::kTimeout, connection.where() + " did not answer within " +
                                                 std::to_string(connection.dial_time() / 1s) + " s"));
  }
  if (now_ - watched_at_ < ByteWatchdog::kPeriod) return;
  watched_at_ = now_;
  doorway_.check(now_);
  note_cut_off(refusals_, dialled_watchdog_.check());
}

// ---- which connections are kept of peers that nobody favoured

void ZmqEngine::meet(const Connection& connection) {
  if (favoured_.contains(connection.peer) || strangers_.holds(connection.id)) return;
  const auto longest = strangers_.enter(connection.id, doorway_.party_of(connection.lanes[0].fd), now_);
  if (!longest) return;
  refuse(*find(*longest), Refusal::kCrowd,
         make_error(ErrorCode::kRefused, "more connections of processes that are no members than are kept"));
}

void ZmqEngine::favour(const std::vector<PeerId>& peers) {
  favoured_ = std::set<PeerId>(peers.begin(), peers.end());
  std::vector<ConnectionId> accepted;
  for (const auto& [id, connection] : connections_) {
    if (connection->dialled) continue;
    if (favoured_.contains(connection->peer)) strangers_.leave(id);
    accepted.push_back(id);
  }
  for (const ConnectionId id : accepted)
    if (const Connection* connection = find(id)) meet(*connection);
}

Status ZmqEngine::room_for_dial() const {
  std::uint64_t taken = doorway_.size();
  for (const auto& [id, connection] : connections_)
    if (connection->dialled) taken += 2 * (ZmqSocket::kDescriptors + (connection->relayed ? 2 : 0));
  if (taken <= bounds_.descriptors) return Status::success();
  return make_error(ErrorCode::kUnreachable, "no descriptor is left for it: connections have " + std::to_string(taken) +
                                                 " of " + std::to_string(bounds_.descriptors) +
                                                 ". HINT: raise the limit (ulimit -n)");
}

}  // namespace shoal
