#pragma once
// Every hard limit on what another process may make us hold or do, in one place. What passes a limit is refused by name
// and counted: on the wire by Refusal (wire.h), on a link by TransportCounters (transport.h).
#include <cstddef>
#include <cstdint>

#include "common/time.h"

namespace shoal::limits {

inline constexpr std::uint32_t kProtocolVersion = 16;
inline constexpr std::size_t kControlBytesMax = 1u << 20;  // one message on the control lane
inline constexpr std::size_t kChunkBytes = 256u << 10;     // what we send at a time on the bulk lane, at most
inline constexpr std::size_t kChunkBytesMin = 8u << 10;    // and at least, where a transfer has so much left
inline constexpr std::size_t kChunkBytesMax = 1u << 20;    // what we accept
inline constexpr std::size_t kFramesPerMessageMax = 4;
inline constexpr std::uint64_t kTransferBytesMax = 1ull << 30;  // all frames of one message
inline constexpr std::uint64_t kInboundBytesPerPeerMax = 2ull << 30;
inline constexpr std::uint64_t kInboundBytesMax = 8ull
                                                  << 30;  // reserved for unfinished transfers, all links of the process
inline constexpr std::uint64_t kByteCreditsInitial =
    4u << 20;  // bulk bytes that a receiver takes before it says more; the line is filled by line_fill.h
inline constexpr std::uint64_t kByteCreditsMax = 64u << 20;
inline constexpr std::size_t kOutboundQueueMax = 4096;          // control messages waiting for one link
inline constexpr std::uint64_t kOutboundBytesMax = 1ull << 30;  // frame bytes waiting for one link
inline constexpr std::size_t kPeersMax = 4096;                  // links of one process
inline constexpr std::size_t kStagesMax = 256;
inline constexpr std::size_t kReplicasMax = 256;   // members of one stage
inline constexpr std::size_t kListMax = 8192;      // items of any list in a message
inline constexpr std::size_t kHeldStatesMax = 64;  // states of its stage that a member says it has
inline constexpr std::size_t kRefusedMax = 64;     // microbatches that a member says it refuses
inline constexpr std::size_t kSerialsMax =
    1u << 18;  // serials in one message: what a round names (transport/serial_list.h)
inline constexpr std::size_t kSerialBytesMax = 768u << 10;  // of such a list on the wire: below kControlBytesMax
inline constexpr std::size_t kTextMax = 512;                // any text in a message
inline constexpr std::size_t kBodyMax = 64u << 10;          // manifest body
inline constexpr std::size_t kListBytesMax = 768u << 10;    // a signed member list, and what changed of one
inline constexpr std::size_t kDepthMax = 8;                 // arrays within arrays in a message; a member list needs 6
inline constexpr Duration kHandshakeTime = 2s;              // connection to accepted hello
inline constexpr Duration kPingPeriod = 1s;
// A link that for so long brought nothing but pings is idle. An end then pings only when it hears nothing for the
// second time, who was dialled a kPingPeriod later: the other end's ping, with its answer, serves both.
inline constexpr Duration kIdleAfter = 5s, kIdlePingPeriod = 2s;
inline constexpr Duration kLinkSilenceMax = 6s;                 // nothing heard for so long: the link is down
inline constexpr Duration kTransferSilenceMax = 30s;            // announced frames, but no chunk for so long
inline constexpr Duration kRedialMin = 100ms, kRedialMax = 5s;  // backoff after a failed or short-lived link
// A relayed link that has stood for so long gives way to a direct one although something is under way on it. And the
// pauses between attempts at a direct one beside it, which double.
inline constexpr Duration kRelayedLinkTime = 10s, kDirectAgainMax = 600s;
inline constexpr Duration kLingerTime =
    500ms;  // a refused or closed connection stays so long, for the reason to be read
inline constexpr std::size_t kAddressesMax = 8;            // of one peer
inline constexpr std::size_t kRelaysMax = 16;              // of a run
inline constexpr std::size_t kHomesMax = 2;                // relays that one peer is called at
inline constexpr std::size_t kAddressBytesMax = 128;       // of one address
inline constexpr std::size_t kRetiredSessionsMax = 64;     // former sessions remembered of one peer, to refuse them
inline constexpr std::size_t kFencedSessionsMax = 65536;   // fenced sessions remembered by the process
inline constexpr std::uint32_t kMalformedPerLinkMax = 32;  // control messages that make no sense, then the link ends
// Control messages of one link, sustained, and at once, as after our own standstill. Swarms send hundreds a second.
inline constexpr double kMessagesPerSecondMax = 20'000, kMessagesBurstMax = 40'000;

// The wire over ZeroMQ, in front of any link.
// One connection's, on the way to the loop. A message counts its payload and about what holding it costs.
inline constexpr std::uint64_t kUnreadBytesMax = kByteCreditsMax + (32u << 20);
inline constexpr std::uint64_t kUnreadMessageCost = 512;
// One lane's, not given to its socket yet.
inline constexpr std::uint64_t kQueuedControlBytesMax = 8u << 20, kQueuedBulkBytesMax = 4u << 20;
// By which libzmq accepts larger messages than we do: our refusals have names.
inline constexpr std::size_t kMessageSlackBytes = 1024;
// libzmq's own queue of one connection, each way.
inline constexpr int kSocketBulkMessagesMax = 8, kSocketControlMessagesMax = 256;
inline constexpr int kSocketsMax = 20000;          // of one process
inline constexpr std::size_t kHalfOpenMax = 1024;  // accepted connections that wait for their bulk lane
// Accepted connections of one listener: in all, and of those who did not greet yet. Where the process may have few
// descriptors, fewer (transport/zmq/connection_bounds.h).
inline constexpr std::size_t kAcceptedMax = 2 * kPeersMax, kUngreetedMax = 1024, kUngreetedPerAddressMax = 256;
// Accepted connections of one address, both lanes: so many at once, and in the long run so many a second.
inline constexpr double kAcceptedPerAddressBurst = 512, kAcceptedPerAddressSecond = 32;
// Accepted connections of peers that are no members.
inline constexpr std::size_t kStrangersMax = 1024, kStrangersPerAddressMax = 512;
inline constexpr Duration kGreetingTime = 5s;               // from the TCP connection to the greeting
inline constexpr std::uint64_t kDescriptorsReserved = 256;  // of the process, not for connections
inline constexpr Duration kKeepaliveIdle = 20s;             // of TCP, on both lanes
inline constexpr Duration kDialTime = 5s;                   // from the dial to both lanes
inline constexpr Duration kRelayedDialTime = 10s;           // the same over a relay
inline constexpr Duration kBeforeRelayTime = 2s;            // an address has so long, where a relay leads there too
inline constexpr Duration kWalledDialTime = 1500ms;         // the same where nothing but a relay was ever reached
// Others call this process at relays: so many pipes at once, calls in the long run and at once.
inline constexpr std::size_t kCalledPipesMax = 512;
inline constexpr double kCallsPerSecond = 32, kCallsBurst = 128;
inline constexpr std::size_t kEarlyMessagesMax = 64;   // dialled: control messages before the bulk lane stands
inline constexpr std::size_t kTailMessagesMax = 8192;  // read of all connections before the end of one is believed
inline constexpr std::size_t kBuriedRoutesMax = 4096;  // connections that were ended, whose last messages are ignored
inline constexpr std::uint64_t kStrangerBytesMax = 64u << 10;  // received on a connection before it greets
// Received since its last whole message; room for socket buffers and libzmq's queue of one that is only quick.
inline constexpr std::uint64_t kMessagelessBytesMax = 16u << 20;

}  // namespace shoal::limits
