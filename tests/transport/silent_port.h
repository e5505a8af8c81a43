#pragma once
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "common/os/posix_file.h"

namespace shoal {

// Listens, and drops every packet that comes: who dials waits for an answer. Returns its port; 0: it could not be made.
inline std::uint16_t listen_in_silence(const Descriptor& listener) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  sock_filter drop = {BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program = {1, &drop};
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), raw, size) != 0 || ::listen(listener.get(), 8) != 0) return 0;
  if (::setsockopt(listener.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) return 0;
  return ::getsockname(listener.get(), raw, &size) == 0 ? ntohs(address.sin_port) : std::uint16_t{0};
}

}  // namespace shoal
