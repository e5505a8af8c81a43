#include "common/os/tcp_place.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/ids.h"
#include "common/os/thread_loop.h"

namespace shoal {
namespace {

constexpr int kBacklog = 512;

struct SocketAddress {
  sockaddr_storage raw{};
  socklen_t size = sizeof raw;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&raw); }
};

std::optional<SocketAddress> address_of(const HostPort& place) {
  SocketAddress address;
  auto* const four = reinterpret_cast<sockaddr_in*>(&address.raw);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&address.raw);
  address.raw.ss_family = static_cast<sa_family_t>(place.is_v6() ? AF_INET6 : AF_INET);
  address.size = place.is_v6() ? sizeof *six : sizeof *four;
  (place.is_v6() ? six->sin6_port : four->sin_port) = htons(place.port);
  void* const raw = place.is_v6() ? static_cast<void*>(&six->sin6_addr) : static_cast<void*>(&four->sin_addr);
  if (::inet_pton(address.raw.ss_family, place.host.c_str(), raw) != 1) return std::nullopt;
  return address;
}

std::optional<HostPort> place_of(SocketAddress address) {
  const bool v6 = address.raw.ss_family == AF_INET6;
  const auto* four = reinterpret_cast<const sockaddr_in*>(&address.raw);
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&address.raw);
  char text[INET6_ADDRSTRLEN] = {};
  if (v6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
    if (::inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], text, sizeof text) == nullptr) return std::nullopt;
  } else {
    const void* raw = v6 ? static_cast<const void*>(&six->sin6_addr) : static_cast<const void*>(&four->sin_addr);
    if (::inet_ntop(address.raw.ss_family, raw, text, sizeof text) == nullptr) return std::nullopt;
  }
  return HostPort{text, ntohs(v6 ? six->sin6_port : four->sin_port)};
}

Error cannot_dial(const std::string& what) {
  return make_error(ErrorCode::kUnreachable, "cannot dial " + what + ": " + std::strerror(errno));
}

// Bytes leave as they come.
Result<Descriptor> make_socket(bool v6) {
  Descriptor socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return cannot_dial("at all");
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

Error cannot_listen(const HostPort& place) {
  const int error = errno;
  const char* const hint = error == EACCES       ? ". HINT: a port below 1024 takes root or CAP_NET_BIND_SERVICE"
                           : error == EADDRINUSE ? ". HINT: another process listens there; choose another port"
                                                 : "";
  return make_error(error == EADDRINUSE ? ErrorCode::kBusy : ErrorCode::kIo,
                    "cannot listen on " + place.text() + ": " + std::strerror(error) + hint);
}

}  // namespace

Result<Descriptor> listen_at(const HostPort& place) {
  const auto address = address_of(place);
  if (!address) return make_error(ErrorCode::kInput, "cannot listen on " + place.text() + ": not an IP address");
  SocketAddress to = *address;
  Descriptor socket(::socket(to.raw.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1, no = 0;
  if (socket.get() < 0) return cannot_listen(place);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (place.is_v6()) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (::bind(socket.get(), to.get(), to.size) != 0 || ::listen(socket.get(), kBacklog) != 0)
    return cannot_listen(place);
  return socket;
}

Result<Descriptor> dial(const HostPort& place) {
  SHOAL_ASSIGN(Descriptor socket, make_socket(place.is_v6()));
  SHOAL_TRY(dial_from(socket, place));
  return socket;
}

Result<Descriptor> make_socket_at(const std::string& host) {
  const HostPort place{host, 0};
  SHOAL_ASSIGN(Descriptor socket, make_socket(place.is_v6()));
  auto address = address_of(place);
  if (!address || ::bind(socket.get(), address->get(), address->size) != 0) return cannot_dial("from " + host);
  return socket;
}

Status dial_from(const Descriptor& socket, const HostPort& place) {
  auto address = address_of(place);
  if (!address) return make_error(ErrorCode::kUnreachable, place.text() + " is no IP address");
  const int outcome = ::connect(socket.get(), address->get(), address->size);
  return outcome == 0 || errno == EINPROGRESS ? Status::success() : Status(cannot_dial(place.text()));
}

Result<Duration> time_of_dial(const HostPort& place, Duration patience) {
  const TimePoint begun = monotonic_now();
  SHOAL_ASSIGN(const Descriptor socket, dial(place));
  pollfd waited{socket.get(), POLLOUT, 0};
  int failure = 0;
  socklen_t size = sizeof failure;
  const auto most = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  if (::poll(&waited, 1, static_cast<int>(most)) < 1)
    return make_error(ErrorCode::kTimeout, place.text() + " did not answer");
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure == 0) return monotonic_now() - begun;
  return make_error(failure == ECONNREFUSED ? ErrorCode::kRefused : ErrorCode::kUnreachable,
                    place.text() + ": " + std::strerror(failure));
}

std::optional<HostPort> own_place(int socket) {
  SocketAddress address;
  if (::getsockname(socket, address.get(), &address.size) != 0) return std::nullopt;
  return place_of(address);
}

std::optional<HostPort> remote_place(int socket) {
  SocketAddress address;
  if (::getpeername(socket, address.get(), &address.size) != 0) return std::nullopt;
  return place_of(address);
}

std::string party_of(const HostPort& place) {
  in6_addr six = {};
  if (!place.is_v6() || ::inet_pton(AF_INET6, place.host.c_str(), &six) != 1) return place.host;
  return hex_of(six.s6_addr, sizeof six / 2);
}

}  // namespace shoal
