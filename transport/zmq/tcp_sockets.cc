#include "transport/zmq/tcp_sockets.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "common/ids.h"
#include "transport/limits.h"

namespace shoal {
namespace {

constexpr int kDoorBacklog = 8;

struct SocketAddress {
  sockaddr_storage raw{};
  socklen_t size = sizeof raw;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&raw); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }
};

SocketAddress address_of(const HostPort& place) {
  SocketAddress address;
  if (place.is_v6()) {
    auto* const six = reinterpret_cast<sockaddr_in6*>(&address.raw);
    *six = {};
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(place.port);
    ::inet_pton(AF_INET6, place.host.c_str(), &six->sin6_addr);
    address.size = sizeof *six;
  } else {
    auto* const four = reinterpret_cast<sockaddr_in*>(&address.raw);
    *four = {};
    four->sin_family = AF_INET;
    four->sin_port = htons(place.port);
    ::inet_pton(AF_INET, place.host.c_str(), &four->sin_addr);
    address.size = sizeof *four;
  }
  return address;
}

std::optional<HostPort> place_of(const SocketAddress& address) {
  const bool v6 = address.raw.ss_family == AF_INET6;
  const auto* four = reinterpret_cast<const sockaddr_in*>(&address.raw);
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&address.raw);
  char text[INET6_ADDRSTRLEN] = {};
  const void* raw = v6 ? static_cast<const void*>(&six->sin6_addr) : static_cast<const void*>(&four->sin_addr);
  if (::inet_ntop(address.raw.ss_family, raw, text, sizeof text) == nullptr) return std::nullopt;
  return HostPort{text, ntohs(v6 ? six->sin6_port : four->sin_port)};
}

std::optional<HostPort> own_place(int fd) {
  SocketAddress address;
  if (::getsockname(fd, address.get(), &address.size) != 0) return std::nullopt;
  return place_of(address);
}

std::optional<HostPort> remote_place(int fd) {
  SocketAddress address;
  if (::getpeername(fd, address.get(), &address.size) != 0) return std::nullopt;
  return place_of(address);
}

Error system_error(const std::string& what) {
  return make_error(ErrorCode::kUnreachable, what + ": " + std::strerror(errno));
}

Result<Descriptor> make_socket(bool v6) {
  Descriptor socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return system_error("no socket");
  const int yes = 1;  // bytes are handed on as they come
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

Status begin_connect(const Descriptor& socket, const HostPort& to) {
  const SocketAddress address = address_of(to);
  if (::connect(socket.get(), address.get(), address.size) == 0 || errno == EINPROGRESS) return Status::success();
  return system_error("cannot dial " + to.text());
}

Result<BoundSocket> bind_at(const std::string& host) {
  BoundSocket bound;
  SHOAL_ASSIGN(bound.socket, make_socket(HostPort{host, 0}.is_v6()));
  const SocketAddress address = address_of({host, 0});
  if (::bind(bound.socket.get(), address.get(), address.size) != 0) return system_error("no port on " + host);
  const auto own = own_place(bound.socket.get());
  if (!own) return system_error("no port on " + host);
  bound.own = *own;
  return bound;
}

}  // namespace

Result<Descriptor> dial_outward(const HostPort& to) {
  SHOAL_ASSIGN(Descriptor socket, make_socket(to.is_v6()));
  const int yes = 1, idle_s = limits::kKeepaliveIdle / 1s, times = 4;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
  SHOAL_TRY(begin_connect(socket, to));
  return socket;
}

Result<BoundSocket> bind_beside(const HostPort& listener) { return bind_at(listener.host); }

Status connect_near(const Descriptor& socket, const HostPort& listener) { return begin_connect(socket, listener); }

Result<BoundSocket> open_door() {
  SHOAL_ASSIGN(BoundSocket door, bind_at("127.0.0.1"));
  if (::listen(door.socket.get(), kDoorBacklog) != 0) return system_error("cannot listen on " + door.own.text());
  return door;
}

std::optional<Descriptor> accept_from(const Descriptor& door, std::uint16_t port) {
  for (int i = 0; i < kDoorBacklog; ++i) {
    Descriptor came(::accept4(door.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (came.get() < 0) break;
    const auto from = remote_place(came.get());
    if (!from || from->host != "127.0.0.1" || from->port != port) continue;
    const int yes = 1;
    ::setsockopt(came.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return came;
  }
  return std::nullopt;
}

std::uint16_t own_port(int fd) {
  const auto own = own_place(fd);
  return own ? own->port : std::uint16_t{0};
}

std::string party_of(const std::string& address) {
  const auto parsed = parse_host_port(address);
  if (!parsed.ok()) return "?";
  in6_addr six = {};
  if (!parsed->is_v6() || ::inet_pton(AF_INET6, parsed->host.c_str(), &six) != 1) return parsed->host;
  const std::size_t counts = IN6_IS_ADDR_V4MAPPED(&six) ? sizeof six : sizeof six / 2;
  return hex_of(six.s6_addr, counts);
}

std::string remote_text(int fd) {
  const auto remote = remote_place(fd);
  return remote ? remote->text() : "?";
}

}  // namespace shoal
