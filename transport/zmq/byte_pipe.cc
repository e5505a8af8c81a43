#include "transport/zmq/byte_pipe.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

namespace shoal {
namespace {
constexpr int kReadsPerTurn = 8;  // of one way: other pipes wait
bool not_now() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
}  // namespace

bool BytePipe::turn(TimePoint now) {
  if (!move(0) || !move(1)) return false;
  if (ways_[0].told && ways_[1].told) return false;
  if ((ways_[0].said_all || ways_[1].said_all) && over_by_ == TimePoint::max()) over_by_ = now + kLastBytes;
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
      way = {{}, 0, way.said_all, way.told};
    }
    if (way.said_all) {
      if (!way.told) ::shutdown(sink, SHUT_WR);
      way.told = true;
      return true;
    }
    const ssize_t got = ::recv(source, fresh.data(), fresh.size(), 0);
    if (got < 0) return not_now();
    way.said_all = got == 0;
    if (got == 0) continue;
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
    if (!ways_[end].said_all && !ways_[end].holds()) waits[end].events |= EPOLLIN;
    if (ways_[1 - end].holds()) waits[end].events |= EPOLLOUT;
  }
  return waits;
}

}  // namespace shoal
