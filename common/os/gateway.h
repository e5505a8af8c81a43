#pragma once
// The router of this machine: where its default routes lead. Thread: any; no state.
#include <string>

namespace shoal {

enum class IpFamily { kV4, kV6 };
// Its IP address, a link-local one with its interface ("fe80::1%eth0"); empty: no default route leads over a router.
std::string gateway_of(IpFamily family);

// The same of the text of /proc/net/route, /proc/net/ipv6_route: of several the one with the least metric.
std::string gateway_in_v4_routes(const std::string& table);
std::string gateway_in_v6_routes(const std::string& table);

}  // namespace shoal
