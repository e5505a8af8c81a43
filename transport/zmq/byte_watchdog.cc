#include "transport/zmq/byte_watchdog.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "common/host_port.h"
#include "common/ids.h"
#include "transport/limits.h"

namespace shoal {
namespace {

std::vector<std::uint8_t> remote_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  const auto* begin = reinterpret_cast<const std::uint8_t*>(&address);
  return {begin, begin + size};
}

std::string text_of_remote(const std::vector<std::uint8_t>& remote) {
  if (remote.empty()) return "?";
  sockaddr_storage address{};
  std::memcpy(&address, remote.data(), std::min(remote.size(), sizeof address));
  const bool v6 = address.ss_family == AF_INET6;
  const auto* four = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&address);
  char text[INET6_ADDRSTRLEN] = {};
  const void* raw = v6 ? static_cast<const void*>(&six->sin6_addr) : static_cast<const void*>(&four->sin_addr);
  if (::inet_ntop(address.ss_family, raw, text, sizeof text) == nullptr) return "?";
  return HostPort{text, ntohs(v6 ? six->sin6_port : four->sin_port)}.text();
}

std::optional<std::uint64_t> received_bytes(int fd) {
  tcp_info facts{};
  socklen_t size = sizeof facts;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &facts, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_bytes_received) + sizeof facts.tcpi_bytes_received) return std::nullopt;
  return facts.tcpi_bytes_received;
}

}  // namespace

std::string remote_text(int fd) { return text_of_remote(remote_of(fd)); }

std::string remote_host(int fd) {
  const auto parsed = parse_host_port(remote_text(fd));
  if (!parsed.ok()) return "?";
  in6_addr six = {};
  if (!parsed->is_v6() || ::inet_pton(AF_INET6, parsed->host.c_str(), &six) != 1) return parsed->host;
  const std::size_t counts = IN6_IS_ADDR_V4MAPPED(&six) ? sizeof six : sizeof six / 2;
  return hex_of(six.s6_addr, counts);
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
      cut_now.push_back({fd, text_of_remote(watched.remote), watched.greeted});
    }
  }
  for (const CutOff& one : cut_now) cut(one.fd);
  return cut_now;
}

}  // namespace shoal
