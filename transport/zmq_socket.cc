#include "transport/zmq_socket.h"

#include <zmq.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "transport/limits.h"

namespace shoal {
namespace {

constexpr int kZapEnforceDomain = 93;  // ZMQ_ZAP_ENFORCE_DOMAIN; the release's header shows it to draft users only
constexpr std::size_t kSlackBytes = 1024;
constexpr std::size_t kCopyBelow = 1024;  // smaller payloads are copied: cheaper than a shared count across threads
constexpr int kBulkMessagesMax = 8, kControlMessagesMax = 256;
constexpr int kSocketsMax = 20000;

std::string last_error() { return zmq_strerror(zmq_errno()); }

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

bool receive_into(void* socket, Message& message) { return zmq_msg_recv(message.raw(), socket, ZMQ_DONTWAIT) >= 0; }

}  // namespace

Result<HostPort> parse_address(const Address& address) {
  const auto bad = [&] {
    return make_error(
        ErrorCode::kInput,
        "address \"" + address + "\": expected HOST:PORT, such as 0.0.0.0:4700 or [::]:4700 (port 0: any free one)");
  };
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return bad();
  HostPort parsed;
  parsed.host = address.substr(0, colon);
  if (parsed.host.front() != '[' && parsed.host.find(':') != std::string::npos) return bad();
  if (parsed.host.find_first_of(" /;*\t\n") != std::string::npos) return bad();
  const char *begin = address.data() + colon + 1, *end = address.data() + address.size();
  const auto [stopped, error] = std::from_chars(begin, end, parsed.port);
  if (error != std::errc{} || stopped != end) return bad();
  return parsed;
}

ZmqContext::ZmqContext() : context_(zmq_ctx_new()) {
  SHOAL_CHECK(context_ != nullptr);
  zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, kSocketsMax);
  zmq_ctx_set(context_, ZMQ_BLOCKY, 0);
}
ZmqContext::~ZmqContext() { zmq_ctx_term(context_); }

ZmqSocket::ZmqSocket(ZmqContext& context, Kind kind) : routed_(kind == Kind::kRouter) {
  socket_ = zmq_socket(context.raw(), kind == Kind::kRouter   ? ZMQ_ROUTER
                                      : kind == Kind::kDealer ? ZMQ_DEALER
                                                              : ZMQ_REP);
  SHOAL_CHECK(socket_ != nullptr);
  set(ZMQ_LINGER, 0);
}
ZmqSocket::ZmqSocket(ZmqSocket&& other) noexcept
    : socket_(std::exchange(other.socket_, nullptr)),
      monitor_(std::exchange(other.monitor_, nullptr)),
      routed_(other.routed_) {}
ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  close();
  socket_ = std::exchange(other.socket_, nullptr);
  monitor_ = std::exchange(other.monitor_, nullptr);
  routed_ = other.routed_;
  return *this;
}
ZmqSocket::~ZmqSocket() { close(); }

void ZmqSocket::close() {
  if (monitor_) {
    zmq_socket_monitor(socket_, nullptr, 0);
    zmq_close(std::exchange(monitor_, nullptr));
  }
  if (socket_) zmq_close(std::exchange(socket_, nullptr));
}

void ZmqSocket::set(int option, int value) { set(option, &value, sizeof value); }
void ZmqSocket::set(int option, const void* bytes, std::size_t size) {
  SHOAL_CHECK_EQ(zmq_setsockopt(socket_, option, bytes, size), 0);
}

void ZmqSocket::configure(Lane lane, const KeyPair& key, bool ipv6) {
  const bool bulk = lane == Lane::kBulk;
  const std::int64_t message_bytes_max =
      static_cast<std::int64_t>((bulk ? limits::kChunkBytesMax : limits::kControlBytesMax) + kSlackBytes);
  set(ZMQ_MAXMSGSIZE, &message_bytes_max, sizeof message_bytes_max);
  set(ZMQ_SNDHWM, bulk ? kBulkMessagesMax : kControlMessagesMax);
  set(ZMQ_RCVHWM, bulk ? kBulkMessagesMax : kControlMessagesMax);
  set(ZMQ_HANDSHAKE_IVL, 2000);
  set(ZMQ_IMMEDIATE, 1);
  set(ZMQ_RECONNECT_IVL, -1);  // a connection that broke is over: links decide about the next one
  set(ZMQ_IPV6, ipv6 ? 1 : 0);
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
  const std::string endpoint = "tcp://" + address.host + ":" + (address.port == 0 ? "*" : std::to_string(address.port));
  if (zmq_bind(socket_, endpoint.c_str()) == 0) return Status::success();
  const int code = zmq_errno();
  if (code == EADDRINUSE) {
    return make_error(ErrorCode::kIo, "port " + std::to_string(address.port) + " on " + address.host +
                                          " is in use. HINT: choose another with --listen HOST:PORT (PORT and PORT + 1 "
                                          "must be free), or port 0 for any");
  }
  if (code == EACCES)
    return make_error(ErrorCode::kIo, "port " + std::to_string(address.port) +
                                          " may not be opened by this user. HINT: choose one above 1023");
  return make_error(ErrorCode::kInput, "cannot listen on " + address.text() + ": " + last_error() +
                                           ". HINT: give an address of this machine, or 0.0.0.0:PORT");
}

HostPort ZmqSocket::bound_to() const {
  char endpoint[256];
  std::size_t size = sizeof endpoint;
  SHOAL_CHECK_EQ(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
  auto parsed = parse_address(std::string(endpoint).substr(std::strlen("tcp://")));
  SHOAL_CHECK(parsed.ok());
  return *parsed;
}

Status ZmqSocket::connect(const HostPort& address) {
  if (zmq_connect(socket_, ("tcp://" + address.text()).c_str()) == 0) return Status::success();
  return make_error(ErrorCode::kUnreachable, "cannot dial " + address.text() + ": " + last_error());
}

void ZmqSocket::bind_inproc(const std::string& name) {
  SHOAL_CHECK_EQ(zmq_bind(socket_, ("inproc://" + name).c_str()), 0);
}

std::optional<ZmqReceived> ZmqSocket::receive() {
  ZmqReceived received;
  Message route;
  if (routed_) {
    if (!receive_into(socket_, route)) return std::nullopt;
    received.route = route.text();
    if (!route.more()) return std::nullopt;  // never without a payload: libzmq's ROUTER reads whole messages
  }
  auto payload = std::make_shared<Message>();
  if (!receive_into(socket_, *payload)) return std::nullopt;
  if (const char* user = zmq_msg_gets(payload->raw(), "User-Id")) received.user = user;
  received.fd = zmq_msg_get(payload->raw(), ZMQ_SRCFD);
  bool more = payload->more();
  received.one_part = !more;
  while (more) {
    Message rest;
    if (!receive_into(socket_, rest)) break;
    more = rest.more();
  }
  if (received.one_part) {
    const ByteView view = payload->view();
    received.payload = Bytes::wrap(std::move(payload), view);
  }
  return received;
}

ZmqSend ZmqSocket::send(const std::string& route, const Bytes& payload) {
  if (routed_ && zmq_send(socket_, route.data(), route.size(), ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
    return zmq_errno() == EAGAIN ? ZmqSend::kFull : ZmqSend::kGone;
  }
  Message message(payload);
  if (zmq_msg_send(message.raw(), socket_, ZMQ_DONTWAIT) < 0)
    return zmq_errno() == EAGAIN ? ZmqSend::kFull : ZmqSend::kGone;
  return ZmqSend::kSent;
}

std::optional<std::vector<std::string>> ZmqSocket::receive_parts() {
  std::vector<std::string> parts;
  bool more = true;
  while (more) {
    Message part;
    if (!receive_into(socket_, part)) return std::nullopt;
    parts.push_back(part.text());
    more = part.more();
  }
  return parts;
}

void ZmqSocket::send_parts(const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    zmq_send(socket_, parts[i].data(), parts[i].size(), ZMQ_DONTWAIT | (i + 1 < parts.size() ? ZMQ_SNDMORE : 0));
  }
}

void ZmqSocket::start_monitor(ZmqContext& context, const std::string& name) {
  const std::string endpoint = "inproc://monitor-" + name;
  SHOAL_CHECK_EQ(zmq_socket_monitor(socket_, endpoint.c_str(), ZMQ_EVENT_ALL), 0);
  monitor_ = zmq_socket(context.raw(), ZMQ_PAIR);
  SHOAL_CHECK(monitor_ != nullptr);
  const int no_linger = 0, unlimited = 0;
  zmq_setsockopt(monitor_, ZMQ_LINGER, &no_linger, sizeof no_linger);
  zmq_setsockopt(monitor_, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
  SHOAL_CHECK_EQ(zmq_connect(monitor_, endpoint.c_str()), 0);
}

std::optional<ZmqMonitorEvent> ZmqSocket::monitor_event() {
  Message head, endpoint;
  if (!monitor_ || !receive_into(monitor_, head)) return std::nullopt;
  if (head.more()) receive_into(monitor_, endpoint);
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

void zmq_wait(const std::vector<ZmqWaiting>& sockets, int wake_fd, Duration timeout) {
  std::vector<zmq_pollitem_t> items;
  items.reserve(sockets.size() + 1);
  if (wake_fd >= 0) items.push_back({nullptr, wake_fd, ZMQ_POLLIN, 0});
  for (const ZmqWaiting& waiting : sockets) {
    items.push_back({waiting.socket, 0, static_cast<short>(ZMQ_POLLIN | (waiting.for_room ? ZMQ_POLLOUT : 0)), 0});
  }
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  zmq_poll(items.data(), static_cast<int>(items.size()), static_cast<long>(milliseconds));
}

}  // namespace shoal
