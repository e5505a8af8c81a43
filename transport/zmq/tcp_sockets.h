#pragma once
// TCP sockets of ours, none of which ever waits, and addresses of all. Thread: any; no state.
// ERRORS of what makes or connects one: kUnreachable, with what the system says.
#include <optional>

#include "common/host_port.h"
#include "common/os/posix_file.h"
#include "common/result.h"

namespace shoal {

// A socket and its own address.
struct BoundSocket {
  Descriptor socket;
  HostPort own;
};

// Begins to connect. TCP asks while the connection is silent, as on the lanes (limits::kKeepaliveIdle). REQUIRES: a
// literal address.
Result<Descriptor> dial_outward(const HostPort& to);
// In two steps, so that the address is known before the listener hears of it.
Result<BoundSocket> bind_beside(const HostPort& listener);
Status connect_near(const Descriptor& socket, const HostPort& listener);

// Listens on 127.0.0.1, at a port that the system chooses.
Result<BoundSocket> open_door();
// What came to a door from this port of 127.0.0.1; all else that came is closed. Empty: it has not come yet.
std::optional<Descriptor> accept_from(const Descriptor& door, std::uint16_t port);
// The port of a connected socket at this end; 0: it is none.
std::uint16_t own_port(int fd);

// The part of an address that one party holds: the IPv4 address, or the first 64 bits of an IPv6 one. "?" of no
// address.
std::string party_of(const std::string& address);
// "address:port" of the other end of a descriptor; "?" when it has none any more.
std::string remote_text(int fd);

}  // namespace shoal
