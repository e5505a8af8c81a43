#include "transport/relay/relay_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "transport/limits.h"

namespace shoal {
namespace {

constexpr std::size_t kReadBytes = 16u << 10;  // room is made for what came, not for what is announced
constexpr int kReceiveBytes = 128 << 10;       // of the kernel's, which doubles it: memory of strangers
constexpr int kUnsentBytes = 64 << 10;         // of the kernel's, that are not under way yet
constexpr unsigned kUserTimeoutMs = 30'000;    // sent and not acknowledged, or a window that stays shut
constexpr int kKeepaliveTimes = 4;

void set(int fd, int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof value); }
bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

RelaySocket::RelaySocket(Descriptor socket) : socket_(std::move(socket)) {
  const int fd = socket_.get(), idle_s = static_cast<int>(limits::kKeepaliveIdle / 1s);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, SOL_SOCKET, SO_RCVBUF, kReceiveBytes);
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, idle_s);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveTimes);
  set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

RelaySocket::Heard RelaySocket::hear() {
  while (heard_.size() < awaited_) {
    const std::size_t had = heard_.size();
    heard_.resize(std::min(awaited_, had + kReadBytes));
    const long came = take(MutableByteView(heard_).subspan(had));
    heard_.resize(had + static_cast<std::size_t>(std::max(0L, came)));
    if (came < 0) return Heard::kOver;
    if (came == 0) return Heard::kNotYet;
  }
  return Heard::kWhole;
}

long RelaySocket::take(MutableByteView into) {
  const ssize_t came = ::recv(socket_.get(), into.data(), into.size(), 0);
  if (came > 0) return came;
  if (came == 0 || !would_wait()) return -1;
  readable = false;
  return 0;
}

bool RelaySocket::say(ByteView bytes) {
  if (!holds()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && !would_wait()) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(0, sent)));
  }
  if (held_.size() - said_ + bytes.size() > kRelayHeldBytes) return false;
  held_.insert(held_.end(), bytes.begin(), bytes.end());
  return true;
}

bool RelaySocket::say_held() {
  if (!holds()) return true;
  const ssize_t sent = ::send(socket_.get(), held_.data() + said_, held_.size() - said_, MSG_NOSIGNAL);
  if (sent < 0) return would_wait();
  said_ += static_cast<std::size_t>(sent);
  if (!holds()) std::vector<std::uint8_t>().swap(held_), said_ = 0;
  if (said_ >= kRelayHeldBytes)
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(said_)), said_ = 0;
  return true;
}

void RelaySocket::say_no_more() {
  if (!holds()) ::shutdown(socket_.get(), SHUT_WR);
}

}  // namespace shoal
