#include "transport/zmq/zmq_socket.h"

#include <poll.h>
#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/limits.h"
#include "transport/zmq/socket_errors.h"

namespace shoal {
namespace {

constexpr int kZapEnforceDomain = 93;     // ZMQ_ZAP_ENFORCE_DOMAIN; the release's header shows it to draft users only
constexpr std::size_t kCopyBelow = 1024;  // smaller payloads are copied: cheaper than a shared count across threads

std::string last_error() { return zmq_strerror(zmq_errno()); }

Error no_socket() {
  return make_error(ErrorCode::kIo, "this process cannot make another socket (" + last_error() +
                                        "). HINT: raise the limit of descriptors (ulimit -n)");
}

class Message {
 public:
  Message() { zmq_msg_init(&message_); }
  explicit Message(const Bytes& payload) {
    if (payload.size() < kCopyBelow) {
      SHOAL_CHECK_EQ(zmq_msg_init_size(&message_, payload.size()), 0);
      if (!payload.empty()) std::memcpy(zmq_msg_data(&message_), payload.data(), payload.size());
      return;
    }
    auto* kept = new Bytes(payload);
    const auto release = [](void*, void* hint) { delete static_cast<Bytes*>(hint); };
    SHOAL_CHECK_EQ(zmq_msg_init_data(&message_, const_cast<std::uint8_t*>(kept->data()), kept->size(), release, kept),
                   0);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { zmq_msg_close(&message_); }
  zmq_msg_t* raw() { return &message_; }
  ByteView view() { return {static_cast<const std::uint8_t*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)}; }
  std::string text() { return {static_cast<const char*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)}; }
  bool more() { return zmq_msg_more(&message_) != 0; }

 private:
  zmq_msg_t message_;
};

}  // namespace

ZmqContext::ZmqContext() : context_(zmq_ctx_new()) {
  SHOAL_CHECK(context_ != nullptr);
  SHOAL_CHECK(asked_by_libraries());
  zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, limits::kSocketsMax);
  zmq_ctx_set(context_, ZMQ_BLOCKY, 0);
}
ZmqContext::~ZmqContext() { zmq_ctx_term(context_); }

Result<ZmqSocket> ZmqSocket::make(ZmqContext& context, Kind kind) {
  void* const handle = zmq_socket(context.raw(), kind == Kind::kRouter   ? ZMQ_ROUTER
                                                 : kind == Kind::kDealer ? ZMQ_DEALER
                                                                         : ZMQ_REP);
  if (handle == nullptr) return no_socket();
  ZmqSocket socket;
  socket.work_ = end_of(handle);
  socket.routed_ = kind == Kind::kRouter;
  socket.set(ZMQ_LINGER, 0);
  return socket;
}
ZmqSocket::ZmqSocket(ZmqSocket&& other) noexcept
    : work_(std::exchange(other.work_, {})), monitor_(std::exchange(other.monitor_, {})), routed_(other.routed_) {}
ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  close();
  work_ = std::exchange(other.work_, {});
  monitor_ = std::exchange(other.monitor_, {});
  routed_ = other.routed_;
  return *this;
}
ZmqSocket::~ZmqSocket() { close(); }

void ZmqSocket::close() {
  if (monitor_.handle) {
    zmq_socket_monitor(work_.handle, nullptr, 0);
    zmq_close(std::exchange(monitor_, {}).handle);
  }
  if (work_.handle) zmq_close(std::exchange(work_, {}).handle);
}

ZmqSocket::End ZmqSocket::end_of(void* handle) {
  SHOAL_CHECK(handle != nullptr);
  End end{.handle = handle};
  std::size_t size = sizeof end.fd;
  SHOAL_CHECK_EQ(zmq_getsockopt(handle, ZMQ_FD, &end.fd, &size), 0);
  return end;
}

void ZmqSocket::look(End& end) {
  int events = 0;
  std::size_t size = sizeof events;
  SHOAL_CHECK_EQ(zmq_getsockopt(end.handle, ZMQ_EVENTS, &events, &size), 0);
  end.readable = (events & ZMQ_POLLIN) != 0;
  end.writable = (events & ZMQ_POLLOUT) != 0;
  end.unsure = false;
}

// A failed receive has asked libzmq for news first, so "nothing there" is certain until the descriptor says otherwise.
bool ZmqSocket::receive_into(End& end, void* message) {
  if (!end.readable && !end.unsure) return false;
  const bool received = zmq_msg_recv(static_cast<zmq_msg_t*>(message), end.handle, ZMQ_DONTWAIT) >= 0;
  end.unsure = received;
  end.readable = received;
  return received;
}

void ZmqSocket::set(int option, int value) { set(option, &value, sizeof value); }
void ZmqSocket::set(int option, const void* bytes, std::size_t size) {
  SHOAL_CHECK_EQ(zmq_setsockopt(work_.handle, option, bytes, size), 0);
}

void ZmqSocket::configure(Lane lane, const KeyPair& key, bool ipv6) {
  const bool bulk = lane == Lane::kBulk;
  const std::int64_t message_bytes_max = static_cast<std::int64_t>(
      (bulk ? limits::kChunkBytesMax : limits::kControlBytesMax) + limits::kMessageSlackBytes);
  set(ZMQ_MAXMSGSIZE, &message_bytes_max, sizeof message_bytes_max);
  set(ZMQ_SNDHWM, bulk ? limits::kSocketBulkMessagesMax : limits::kSocketControlMessagesMax);
  set(ZMQ_RCVHWM, bulk ? limits::kSocketBulkMessagesMax : limits::kSocketControlMessagesMax);
  set(ZMQ_HANDSHAKE_IVL, static_cast<int>(limits::kGreetingTime / 1ms));
  set(ZMQ_IMMEDIATE, 1);
  set(ZMQ_RECONNECT_IVL, -1);  // a connection that broke is over: links decide about the next one
  set(ZMQ_IPV6, ipv6 ? 1 : 0);
  // An idle bulk lane says nothing, and a router forgets what is silent.
  set(ZMQ_TCP_KEEPALIVE, 1);
  set(ZMQ_TCP_KEEPALIVE_IDLE, limits::kKeepaliveIdle / 1s);
  set(ZMQ_TCP_KEEPALIVE_INTVL, limits::kKeepaliveIdle / 1s);
  set(ZMQ_TCP_KEEPALIVE_CNT, 4);
  if (routed_) set(ZMQ_ROUTER_MANDATORY, 1);
  const CurveKey public_key = key.curve_public();
  CurveKey secret_key = key.curve_secret();
  set(ZMQ_CURVE_PUBLICKEY, public_key.data(), public_key.size());
  set(ZMQ_CURVE_SECRETKEY, secret_key.data(), secret_key.size());
  explicit_bzero(secret_key.data(), secret_key.size());
}

void ZmqSocket::expect_peer(const CurveKey& key) { set(ZMQ_CURVE_SERVERKEY, key.data(), key.size()); }

void ZmqSocket::listen_securely() {
  set(ZMQ_BACKLOG, 128);
  set(ZMQ_CURVE_SERVER, 1);
  set(ZMQ_ZAP_DOMAIN, "shoal", 5);
  set(kZapEnforceDomain, 1);  // without a key check nobody is let in, instead of everybody
}

Status ZmqSocket::bind(const HostPort& address) {
  const std::string host = address.is_v6() ? "[" + address.host + "]" : address.host;
  const std::string endpoint = "tcp://" + host + ":" + (address.port == 0 ? "*" : std::to_string(address.port));
  if (zmq_bind(work_.handle, endpoint.c_str()) == 0) return Status::success();
  const int code = zmq_errno();
  if (code == EADDRINUSE)
    return make_error(ErrorCode::kBusy, "port " + std::to_string(address.port) + " on " + address.host + " is in use");
  if (code == EACCES)
    return make_error(ErrorCode::kIo, "port " + std::to_string(address.port) +
                                          " may not be opened by this user. HINT: choose one above 1023");
  return make_error(ErrorCode::kInput, "cannot listen on " + address.text() + ": " + last_error() +
                                           ". HINT: give an address of this machine, or 0.0.0.0:PORT");
}

HostPort ZmqSocket::bound_to() const {
  char endpoint[256];
  std::size_t size = sizeof endpoint;
  SHOAL_CHECK_EQ(zmq_getsockopt(work_.handle, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
  auto parsed = parse_host_port(std::string(endpoint).substr(std::strlen("tcp://")));
  SHOAL_CHECK(parsed.ok());
  return *parsed;
}

Status ZmqSocket::connect(const HostPort& address) {
  if (zmq_connect(work_.handle, ("tcp://" + address.text()).c_str()) == 0) return Status::success();
  return make_error(ErrorCode::kUnreachable, last_error());
}

void ZmqSocket::bind_inproc(const std::string& name) {
  SHOAL_CHECK_EQ(zmq_bind(work_.handle, ("inproc://" + name).c_str()), 0);
}

std::optional<ZmqReceived> ZmqSocket::receive() {
  ZmqReceived received;
  Message route;
  if (routed_) {
    if (!receive_into(work_, route.raw())) return std::nullopt;
    received.route = route.text();
    if (!route.more()) return std::nullopt;  // never without a payload: libzmq's ROUTER reads whole messages
  }
  auto payload = std::make_shared<Message>();
  if (!receive_into(work_, payload->raw())) return std::nullopt;
  if (const char* user = zmq_msg_gets(payload->raw(), "User-Id")) received.user = user;
  received.fd = zmq_msg_get(payload->raw(), ZMQ_SRCFD);
  bool more = payload->more();
  received.one_part = !more;
  while (more) {
    Message rest;
    if (!receive_into(work_, rest.raw())) break;
    more = rest.more();
  }
  if (received.one_part) {
    const ByteView view = payload->view();
    received.payload = Bytes::wrap(std::move(payload), view);
  }
  return received;
}

ZmqSend ZmqSocket::send(const std::string& route, const Bytes& payload) {
  work_.unsure = true;
  if (routed_ && zmq_send(work_.handle, route.data(), route.size(), ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
    return zmq_errno() == EAGAIN ? ZmqSend::kFull : ZmqSend::kGone;
  }
  Message message(payload);
  if (zmq_msg_send(message.raw(), work_.handle, ZMQ_DONTWAIT) < 0)
    return zmq_errno() == EAGAIN ? ZmqSend::kFull : ZmqSend::kGone;
  return ZmqSend::kSent;
}

std::optional<std::vector<std::string>> ZmqSocket::receive_parts() {
  std::vector<std::string> parts;
  bool more = true;
  while (more) {
    Message part;
    if (!receive_into(work_, part.raw())) return std::nullopt;
    parts.push_back(part.text());
    more = part.more();
  }
  return parts;
}

void ZmqSocket::send_parts(const std::vector<std::string>& parts) {
  work_.unsure = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    zmq_send(work_.handle, parts[i].data(), parts[i].size(), ZMQ_DONTWAIT | (i + 1 < parts.size() ? ZMQ_SNDMORE : 0));
  }
}

Status ZmqSocket::start_monitor(ZmqContext& context, const std::string& name) {
  const std::string endpoint = "inproc://monitor-" + name;
  if (zmq_socket_monitor(work_.handle, endpoint.c_str(), ZMQ_EVENT_ALL) != 0) return no_socket();
  void* const pair = zmq_socket(context.raw(), ZMQ_PAIR);
  if (pair == nullptr) return no_socket();
  monitor_ = end_of(pair);
  const int no_linger = 0, unlimited = 0;
  zmq_setsockopt(monitor_.handle, ZMQ_LINGER, &no_linger, sizeof no_linger);
  zmq_setsockopt(monitor_.handle, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
  SHOAL_CHECK_EQ(zmq_connect(monitor_.handle, endpoint.c_str()), 0);
  return Status::success();
}

std::optional<ZmqMonitorEvent> ZmqSocket::monitor_event() {
  Message head, endpoint;
  if (!monitor_.handle || !receive_into(monitor_, head.raw())) return std::nullopt;
  if (head.more()) receive_into(monitor_, endpoint.raw());
  std::uint16_t number = 0;
  std::uint32_t value = 0;
  if (head.view().size() < 6) return ZmqMonitorEvent{};
  std::memcpy(&number, head.view().data(), 2);
  std::memcpy(&value, head.view().data() + 2, 4);
  using Kind = ZmqMonitorEvent::Kind;
  switch (number) {
    case ZMQ_EVENT_ACCEPTED:
      return ZmqMonitorEvent{Kind::kAccepted, static_cast<int>(value)};
    case ZMQ_EVENT_CONNECTED:
      return ZmqMonitorEvent{Kind::kConnected, static_cast<int>(value)};
    case ZMQ_EVENT_DISCONNECTED:
      return ZmqMonitorEvent{Kind::kDisconnected, static_cast<int>(value)};
    case ZMQ_EVENT_CLOSED:
      return ZmqMonitorEvent{Kind::kConnectFailed, -1};
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return ZmqMonitorEvent{Kind::kKeyRefused, -1};
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      return ZmqMonitorEvent{Kind::kHandshakeFailed, -1};
    default:
      return ZmqMonitorEvent{};
  }
}

// What zmq_poll does, but the events of a socket are asked for only when its descriptor or a call on it gives reason
// to.
class ZmqWait {
 public:
  ZmqWait(const std::vector<ZmqWaiting>& sockets, int wake_fd) {
    if (wake_fd >= 0) items_.push_back({wake_fd, POLLIN, 0}), ends_.push_back(nullptr);
    for (const ZmqWaiting& waiting : sockets) {
      add(waiting.socket->work_, waiting.for_room);
      if (waiting.socket->monitor_.handle) add(waiting.socket->monitor_, false);
    }
  }

  void run(Duration timeout) {
    const auto milliseconds = ready_ ? 0 : std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
    if (::poll(items_.data(), items_.size(), static_cast<int>(milliseconds)) <= 0) return;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (ends_[i] && items_[i].revents != 0) ZmqSocket::look(*ends_[i]);
    }
  }

 private:
  void add(ZmqSocket::End& end, bool for_room) {
    if (end.unsure || for_room) ZmqSocket::look(end);
    ready_ |= end.readable || (for_room && end.writable);
    items_.push_back({end.fd, POLLIN, 0});
    ends_.push_back(&end);
  }

  std::vector<pollfd> items_;
  std::vector<ZmqSocket::End*> ends_;
  bool ready_ = false;
};

void zmq_wait(const std::vector<ZmqWaiting>& sockets, int wake_fd, Duration timeout) {
  ZmqWait(sockets, wake_fd).run(timeout);
}

}  // namespace shoal
