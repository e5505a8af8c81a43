#pragma once
// Which ports a wire listens on when it may choose. They must be free again after the process was killed, so no
// outgoing connection of this machine may get one as its source port: a connection holds its port while it lives and up
// to 60 s longer (TIME_WAIT). The kernel takes source ports from the ephemeral range, so the pair is taken outside of
// it.
//
// Thread: any; no state.
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/rng.h"

namespace shoal {

// From the first to the last, both included.
struct PortRange {
  std::uint16_t first = 0, last = 0;
  bool holds(std::uint16_t port) const { return first <= port && port <= last; }
  bool operator==(const PortRange&) const = default;
};
inline constexpr PortRange kLinuxEphemeralPorts{32768, 60999};

// The text of /proc/sys/net/ipv4/ip_local_port_range: two numbers. ERRORS: kMalformed.
Result<PortRange> parse_port_range(std::string_view text);
// What this machine's kernel says, or Linux's default where it cannot be read.
PortRange ephemeral_ports();

// Every even P >= 10000 (below are the ports of well-known services) whose P and P + 1 lie outside `ephemeral`. When
// too few are left there, all of them: a pair that can be lost is better than none.
std::vector<std::uint16_t> port_candidates(PortRange ephemeral);

// Whether TCP could be listened to on P and P + 1 and UDP on P (the DHT's) right now, on every address of this machine.
bool port_pair_is_free(std::uint16_t port);

// A free pair's P, drawn at random. ERRORS: kBusy (kPortDrawsMax pairs were all taken).
inline constexpr int kPortDrawsMax = 64;
Result<std::uint16_t> draw_port_pair(Rng& rng, PortRange ephemeral);

}  // namespace shoal
