#include "common/os/host_probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "common/host_port.h"
#include "common/os/posix_file.h"

namespace shoal {
namespace {

constexpr Duration kIcmp = 300ms;  // for the answer that a UDP port is closed

bool ready(int socket, short events, Duration patience) {
  pollfd watch{socket, events, 0};
  return ::poll(&watch, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(patience).count())) > 0;
}

int error_at(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

bool udp_is_closed(const addrinfo& to) {
  const Descriptor probe(::socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.get() < 0 || ::connect(probe.get(), to.ai_addr, to.ai_addrlen) != 0) return false;
  if (::send(probe.get(), "", 0, MSG_NOSIGNAL) < 0 && errno == ECONNREFUSED) return true;
  return ready(probe.get(), POLLIN, kIcmp) && error_at(probe.get()) == ECONNREFUSED;
}

// Also by refusing.
bool tcp_answers(const addrinfo& to, Duration patience) {
  const Descriptor probe(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.get() < 0) return false;
  if (::connect(probe.get(), to.ai_addr, to.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return errno == ECONNREFUSED;
  if (!ready(probe.get(), POLLOUT, patience)) return false;
  const int error = error_at(probe.get());
  return error == 0 || error == ECONNREFUSED;
}

}  // namespace

HostProbe probe_host(const std::string& address, Duration patience) {
  const auto parsed = parse_host_port(address);
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (!parsed.ok() || ::getaddrinfo(parsed->host.c_str(), std::to_string(parsed->port).c_str(), &hints, &found) != 0)
    return HostProbe::kAway;
  const HostProbe result = udp_is_closed(*found)           ? HostProbe::kClosed
                           : tcp_answers(*found, patience) ? HostProbe::kSilent
                                                           : HostProbe::kAway;
  ::freeaddrinfo(found);
  return result;
}

}  // namespace shoal
