#pragma once
// Every hard limit on what another process may make us hold. One place; each one is counted and logged when hit.
#include <cstddef>
#include <cstdint>

#include "common/time.h"

namespace shoal::limits {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::size_t kControlBytesMax = 1u << 20;  // one message on the control lane
inline constexpr std::size_t kChunkBytes = 256u << 10;     // what we send at a time on the bulk lane
inline constexpr std::size_t kChunkBytesMax = 1u << 20;    // what we accept
inline constexpr std::size_t kFramesPerMessageMax = 4;
inline constexpr std::uint64_t kTransferBytesMax = 1ull << 30;  // all frames of one message
inline constexpr std::uint64_t kInboundBytesPerPeerMax = 2ull << 30;
inline constexpr std::uint64_t kInboundBytesMax = 8ull
                                                  << 30;  // reserved for unfinished transfers, all links of the process
inline constexpr std::uint64_t kByteCreditsInitial =
    4u << 20;  // bulk bytes in flight before the receiver says more; ~2 x rate x RTT
inline constexpr std::uint64_t kByteCreditsMax = 64u << 20;
inline constexpr std::size_t kOutboundQueueMax = 4096;          // control messages waiting for one link
inline constexpr std::uint64_t kOutboundBytesMax = 1ull << 30;  // frame bytes waiting for one link
inline constexpr std::size_t kPeersMax = 4096;                  // links of one process
inline constexpr std::size_t kStagesMax = 256;
inline constexpr std::size_t kReplicasMax = 256;  // members of one stage
inline constexpr std::size_t kListMax = 8192;     // items of any list in a message
inline constexpr std::size_t kSerialsMax =
    1u << 18;  // serials in one message: what a round names (transport/serial_list.h)
inline constexpr std::size_t kSerialBytesMax = 768u << 10;  // of such a list on the wire: below kControlBytesMax
inline constexpr std::size_t kTextMax = 512;                // any text in a message
inline constexpr std::size_t kBodyMax = 64u << 10;          // manifest body, signed lists
inline constexpr Duration kHandshakeTime = 2s;              // connection to accepted hello
inline constexpr Duration kPingPeriod = 1s;
inline constexpr Duration kLinkSilenceMax = 6s;                 // nothing heard for so long: the link is down
inline constexpr Duration kTransferSilenceMax = 30s;            // announced frames, but no chunk for so long
inline constexpr Duration kRedialMin = 100ms, kRedialMax = 5s;  // backoff after a failed or short-lived link
inline constexpr Duration kLingerTime =
    500ms;  // a refused or closed connection stays so long, for the reason to be read
inline constexpr std::size_t kAddressesMax = 8;  // of one peer

}  // namespace shoal::limits
