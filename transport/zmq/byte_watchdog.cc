#include "transport/zmq/byte_watchdog.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "common/os/tcp_place.h"
#include "transport/limits.h"
#include "transport/refusal_book.h"

namespace shoal {
namespace {

std::vector<std::uint8_t> remote_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  const auto* begin = reinterpret_cast<const std::uint8_t*>(&address);
  return {begin, begin + size};
}

std::optional<std::uint64_t> received_bytes(int fd) {
  tcp_info facts{};
  socklen_t size = sizeof facts;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &facts, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_bytes_received) + sizeof facts.tcpi_bytes_received) return std::nullopt;
  return facts.tcpi_bytes_received;
}

}  // namespace

std::string remote_text(int fd) {
  const auto place = remote_place(fd);
  return place ? place->text() : "?";
}

void ByteWatchdog::opened(int fd) {
  if (fd < 0) return;
  Watched watched;
  watched.remote = remote_of(fd);
  watched_[fd] = std::move(watched);
}

void ByteWatchdog::closed(int fd) { watched_.erase(fd); }

void ByteWatchdog::message(int fd, bool greeted) {
  const auto found = watched_.find(fd);
  if (found == watched_.end()) return;
  found->second.progressed |= greeted;
  found->second.greeted |= greeted;
}

void ByteWatchdog::cut(int fd) {
  const auto found = watched_.find(fd);
  if (found == watched_.end() || found->second.cut) return;
  // The number may belong to somebody else by now, if libzmq closed it and its event is still under way.
  if (found->second.remote.empty() || remote_of(fd) != found->second.remote) return;
  found->second.cut = true;
  ::shutdown(fd, SHUT_RDWR);
}

std::vector<ByteWatchdog::CutOff> ByteWatchdog::check() {
  std::vector<CutOff> cut_now;
  for (auto& [fd, watched] : watched_) {
    if (watched.cut) continue;
    const auto received = received_bytes(fd);
    if (!received) continue;
    const std::uint64_t quota = watched.greeted ? limits::kMessagelessBytesMax : limits::kStrangerBytesMax;
    if (watched.progressed || *received < watched.baseline) {
      watched.baseline = *received;
      watched.progressed = false;
    } else if (*received - watched.baseline > quota) {
      cut_now.push_back({fd, remote_text(fd), watched.greeted});
    }
  }
  for (const CutOff& one : cut_now) cut(one.fd);
  return cut_now;
}

void note_cut_off(RefusalBook& book, const std::vector<ByteWatchdog::CutOff>& cut_off) {
  for (const ByteWatchdog::CutOff& one : cut_off)
    book.note(Refusal::kEndless, one.remote,
              std::string(one.greeted ? "a greeted peer" : "a stranger") + " that finishes no message was cut off");
}

}  // namespace shoal
