#pragma once
// Which addresses of this machine others are told, and whether it has a route to theirs.
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

// "host:port" with the host's IP address in place of its name: the wire dials no names, and others would ask their own
// name servers. Blocks while the name server is asked. `v6`: an IPv6 address will do. ERRORS: kInput.
Result<std::string> resolved_address(const std::string& address, bool v6);

// What others are told to dial: at most three, "IP:port". `listening`: where the wire listens, with its port. In this
// order: `advertise`
// ("host" or "host:port"), the host that is listened on when it is one, our side of the routes to `toward` (addresses;
// each side once, loopback last), the addresses of all interfaces but loopback, loopback. ERRORS: kInput (an address
// that is none, or that nobody can dial: 0.0.0.0; a name that does not resolve).
Result<std::vector<std::string>> own_addresses(const std::string& listening, const std::vector<std::string>& advertise,
                                               const std::vector<std::string>& toward);
// Whether this machine can send to any of `contacts` at all, when there are some. ERRORS: kUnreachable (no route to
// any: the network is down).
Status check_routes(const std::vector<std::string>& contacts);
bool all_loopback(const std::vector<std::string>& addresses);

}  // namespace shoal
