#pragma once
// What a router answers, written here once more from the RFCs and not by the product's own code.
#include <cstdint>
#include <string>
#include <vector>

#include "common/bytes.h"

namespace shoal::test {

using Datagram = std::vector<std::uint8_t>;

// To a PCP MAP request: its nonce, protocol and inner port. REQUIRES: 60 bytes of one.
Datagram pcp_answer(ByteView request, std::uint8_t code, std::uint16_t outer, const std::string& host,
                    std::uint32_t lifetime_s);
// Of a router that knows no PCP, to any of its requests.
Datagram pmp_version_answer();
// To a NAT-PMP request for a TCP port. REQUIRES: 12 bytes of one.
Datagram pmp_answer(ByteView request, std::uint16_t code, std::uint16_t outer, std::uint32_t lifetime_s);
Datagram pmp_address_answer(const std::string& host);

bool is_pcp_map(ByteView request);
bool is_pmp_map(ByteView request);
bool is_pmp_address(ByteView request);
std::uint16_t inner_port_of(ByteView request);
std::uint32_t lifetime_of(ByteView request);

}  // namespace shoal::test
