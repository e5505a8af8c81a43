#include "transport/zmq/relay_talk.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "common/os/tcp_place.h"
#include "transport/limits.h"

namespace shoal {

Result<RelayTalk> RelayTalk::begin(const HostPort& relay) {
  RelayTalk talk;
  SHOAL_ASSIGN(talk.socket_, dial(relay));
  // As on the lanes themselves: routers on the way forget what is silent.
  const int socket = talk.socket_.get(), yes = 1, idle_s = limits::kKeepaliveIdle / 1s, times = 4;
  const unsigned unacknowledged_ms = 30'000;  // or a window that stays shut
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
  return talk;
}

Status RelayTalk::turn() {
  const auto over = [](const char* why) { return make_error(ErrorCode::kUnreachable, why); };
  const auto waits_for_it = [] { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; };
  if (!unsent_.empty()) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && !waits_for_it()) return over(std::strerror(errno));
    if (sent > 0) unsent_.erase(unsent_.begin(), unsent_.begin() + sent);
  }
  while (!whole()) {
    const std::size_t before = heard_.size();
    heard_.resize(awaited_);
    const ssize_t got = ::recv(socket_.get(), heard_.data() + before, awaited_ - before, 0);
    heard_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return over("it closed the connection");
    if (got < 0) return waits_for_it() ? Status::success() : Status(over(std::strerror(errno)));
  }
  return Status::success();
}

SocketWait RelayTalk::waits() const {
  const std::uint32_t to_read = whole() ? 0u : static_cast<std::uint32_t>(EPOLLIN);
  return {socket_.get(), to_read | (unsent_.empty() ? 0u : static_cast<std::uint32_t>(EPOLLOUT))};
}

}  // namespace shoal
