#pragma once
// TCP sockets by address and port. None of them ever waits. Thread: any; no state.
#include <optional>
#include <string>

#include "common/host_port.h"
#include "common/os/posix_file.h"
#include "common/result.h"
#include "common/time.h"

namespace shoal {

// Listens there, on IPv4 as well where it is "[::]"; port 0: any free one. ERRORS, with a HINT: kInput (no literal
// address), kBusy (the port is taken), kIo (it is not ours to take).
Result<Descriptor> listen_at(const HostPort& place);
// Begins to connect there; or in two steps, so that this end's address is known before the other end hears of it.
// ERRORS: kUnreachable, with what the system says.
Result<Descriptor> dial(const HostPort& place);
Result<Descriptor> make_socket_at(const std::string& host);  // any port of this address of the machine
Status dial_from(const Descriptor& socket, const HostPort& place);
// How long it took until somebody there took a connection, which is then closed. Waits, unlike all else here. ERRORS:
// kUnreachable, with what the system says; kRefused (it answers, and nobody listens), kTimeout.
Result<Duration> time_of_dial(const HostPort& place, Duration patience);
// This end's address, and the other one's; an IPv4 address in IPv6's clothes as IPv4. None: it is not connected.
std::optional<HostPort> own_place(int socket);
std::optional<HostPort> remote_place(int socket);
inline std::optional<HostPort> own_place(const Descriptor& socket) { return own_place(socket.get()); }
inline std::optional<HostPort> remote_place(const Descriptor& socket) { return remote_place(socket.get()); }
// The part of an address that one party holds: the IPv4 address, or the first 64 bits of an IPv6 one.
std::string party_of(const HostPort& place);

}  // namespace shoal
