#pragma once
// Which addresses of this machine others are told, and whether it has a route to theirs.
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

// "host:port" with the host's IP address in place of its name: the wire dials no names, and others would ask their own
// name servers. Blocks while the name server is asked. `v6`: an IPv6 address will do. ERRORS: kInput.
Result<std::string> resolved_address(const std::string& address, bool v6);

// Where one listens whom those shall dial: every IPv4 address, and every IPv6 one when this machine has one that others
// can dial, or our side of a route to `toward` is one; any port.
std::string listen_toward(const std::vector<std::string>& toward);

// What others are told to dial: at most three, "IP:port"; what is left out is logged. `listening`: where the wire
// listens, with its port. In this order: `advertise` ("host" or "host:port"), the host that is listened on when it is
// one, our side of the routes to `toward` (addresses; each side once, loopback last) and, where IPv6 is listened on and
// none of them is, an IPv6 address of ours; else the addresses of all interfaces but loopback, those without a carrier
// (a container engine's idle bridge) last, loopback. ERRORS: kInput (an address that is none, or that nobody can dial:
// 0.0.0.0; a name that does not resolve).
Result<std::vector<std::string>> own_addresses(const std::string& listening, const std::vector<std::string>& advertise,
                                               const std::vector<std::string>& toward);
// Whether this machine can send to any of `contacts` at all, when there are some. ERRORS: kUnreachable (no route to
// any: the network is down).
Status check_routes(const std::vector<std::string>& contacts);
bool all_loopback(const std::vector<std::string>& addresses);

}  // namespace shoal
