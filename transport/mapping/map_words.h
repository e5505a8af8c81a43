#pragma once
// What is said to a router so that it forwards ports of this machine, and what it says: PCP's MAP (RFC 6887, sections
// 7, 11) and NAT-PMP (RFC 6886, section 3), both over UDP at its port 5351. TCP alone is mapped.
//
// Thread: any; pure functions.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/bytes.h"
#include "common/result.h"

namespace shoal {

inline constexpr std::uint16_t kRouterPort = 5351;
inline constexpr std::size_t kRouterWordMax = 1100;  // bytes; RFC 6887, section 7

using IpBytes = std::array<std::uint8_t, 16>;  // an IPv4 address as ::ffff:a.b.c.d
// ERRORS: kInput (no IP address).
Result<IpBytes> ip_bytes(const std::string& host);
std::string ip_text(const IpBytes& ip);

using MapNonce = std::array<std::uint8_t, 12>;

struct MapRequest {
  std::uint16_t inner = 0;       // our port
  std::uint16_t outer = 0;       // the router's, as wished; 0: any
  std::uint32_t lifetime_s = 0;  // 0: the mapping is given back
};
Bytes pack_pcp_map(const MapRequest& request, const IpBytes& client, const MapNonce& nonce);  // 60 bytes
Bytes pack_pmp_map(const MapRequest& request);                                                // 12 bytes
Bytes pack_pmp_address();  // 2 bytes: which address has the router?

enum class MapWord : std::uint8_t { kPcpMap, kPmpMap, kPmpAddress, kPmpOther };
struct MapAnswer {
  MapWord word = MapWord::kPcpMap;
  std::uint16_t code = 0;        // 0: done; else why_not() says it
  MapNonce nonce{};              // PCP: the request's
  std::uint16_t inner = 0;       // of a mapping
  std::uint16_t outer = 0;       // of a mapping
  std::uint32_t lifetime_s = 0;  // of a mapping
  IpBytes host{};                // the router's outer address: PCP's and kPmpAddress's
};
// ERRORS: kMalformed (size, version, a request, an answer to what is not asked).
Result<MapAnswer> parse_map_answer(ByteView bytes);

// PCP's UNSUPP_VERSION, or that of a router that speaks NAT-PMP alone to a PCP request.
bool lacks_pcp(const MapAnswer& answer);
std::string why_not(const MapAnswer& answer);  // "the router refuses to map ports (PCP code 2)"

}  // namespace shoal
