#pragma once
// Whether anybody is at an address that gave no answer: tells a host that is away from one that speaks to others.
#include <string>

#include "common/time.h"

namespace shoal {

enum class HostProbe {
  kAway,    // nothing came back
  kClosed,  // the host is there, and nobody listens on that UDP port
  kSilent,  // the host is there, and does not say that the UDP port is closed
};

// One empty datagram and one TCP connection, each for at most `patience`; `address` is "host:port". Blocks.
HostProbe probe_host(const std::string& address, Duration patience);

}  // namespace shoal
