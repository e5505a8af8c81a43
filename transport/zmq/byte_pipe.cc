#include "transport/zmq/byte_pipe.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

namespace shoal {
namespace {
constexpr int kReadsPerTurn = 8;  // of one way: other pipes wait
bool has_hung_up(int socket) {
  pollfd asked{socket, POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}
bool not_now() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
}  // namespace

bool BytePipe::turn(TimePoint now) {
  if (!move(0) || !move(1)) return false;
  if (ways_[0].over && ways_[1].over) return false;
  for (std::size_t end = 0; end < 2; ++end) {
    Way& way = ways_[end];
    way.hung_up = way.over || (way.holds() && has_hung_up(ends_[end].get()));
    if (way.hung_up && over_by_ == TimePoint::max()) over_by_ = now + kLastBytes;
  }
  return now < over_by_;
}

bool BytePipe::move(std::size_t from) {
  Way& way = ways_[from];
  const int source = ends_[from].get(), sink = ends_[1 - from].get();
  std::array<std::uint8_t, kHeldBytes> fresh;
  for (int reads = 0; reads < kReadsPerTurn; ++reads) {
    if (way.holds()) {
      const ssize_t sent = ::send(sink, way.held.data() + way.passed, way.held.size() - way.passed, MSG_NOSIGNAL);
      if (sent < 0) return not_now();
      way.passed += static_cast<std::size_t>(sent);
      if (way.holds()) return true;
      way = Way();
    }
    if (way.over) return true;
    const ssize_t got = ::recv(source, fresh.data(), fresh.size(), 0);
    if (got < 0) return not_now();
    if (got == 0) {
      ::shutdown(sink, SHUT_WR);
      way.over = true;
      return true;
    }
    const ssize_t sent = ::send(sink, fresh.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
    if (sent < 0 && !not_now()) return false;
    if (sent < got) way.held.assign(fresh.data() + std::max<ssize_t>(sent, 0), fresh.data() + got);
  }
  return true;
}

SocketWaits BytePipe::waits() const {
  SocketWaits waits;
  for (std::size_t end = 0; end < 2; ++end) {
    waits[end].fd = ends_[end].get();
    const Way& way = ways_[end];
    if (!way.over && !way.holds()) waits[end].events |= EPOLLIN;
    if (way.holds() && !way.hung_up) waits[end].events |= EPOLLRDHUP;  // its bytes wait here, its end is not read
    if (ways_[1 - end].holds()) waits[end].events |= EPOLLOUT;
  }
  return waits;
}

}  // namespace shoal
