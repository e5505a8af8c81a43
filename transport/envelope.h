#pragma once
// Bytes of the two lanes. Control lane: one envelope a message = prologue, msgpack body, description of the frames that
// follow on the bulk lane. Bulk lane: chunks of the frames' concatenation. Layout, byte by byte, with a worked example:
// docs/WIRE.md.
//
// Thread: any; pure functions.   Bounds: limits.h; every length is checked before anything is allocated for it.
// Integers outside the body are little-endian.
#include <cstdint>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "transport/messages.h"

namespace shoal {

inline constexpr std::size_t kPrologueBytes = 16;
inline constexpr std::size_t kTransferPrefixBytes = 9;  // id, number of frames
inline constexpr std::size_t kFrameHeadBytes = 12;      // size, CRC-32C
inline constexpr std::size_t kChunkHeadBytes = 24;

struct FrameHead {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;  // CRC-32C of the whole frame
};

struct TransferHead {
  std::uint64_t id = 0;  // never 0
  std::vector<FrameHead> frames;
  std::uint64_t total_bytes() const;
};

struct Envelope {
  Message message;
  std::optional<TransferHead> transfer;
};

// ERRORS: kTooLarge (a text, list, body or transfer beyond its limit; the message names it).
Result<Bytes> pack_envelope(const Message& message, const std::optional<TransferHead>& transfer);
// Whether these are the bytes of an envelope as they were packed; what they mean is not looked at. ERRORS: kTooLarge,
// kMalformed (no prologue), kVersion (prologue of another protocol version, both numbers named), kCorrupt (checksum).
Status check_envelope(ByteView bytes);
// ERRORS: as check_envelope; kMalformed, kTooLarge of what they mean. Files hold envelopes too: those of a program that
// spoke `oldest` or later are read, which supposes that since then messages have only got fields at their end: what an
// older one lacks is as it is made.
Result<Envelope> parse_envelope(ByteView bytes, std::uint16_t oldest);
Result<Envelope> parse_envelope(ByteView bytes);  // of this protocol version alone

// What this process speaks: limits::kProtocolVersion, or another one under the fault point transport.foreign_version.
std::uint16_t protocol_version();

// The relays that a list may name: kRelaysMax, each an IP address and a port, none twice. ERRORS: kTooLarge,
// kMalformed.
Status check_relays(const std::vector<RelayPlace>& relays);

// The bodies that the run's key signs (Members, MembersChange). ERRORS as above, and those of check_relays.
Result<std::vector<std::uint8_t>> pack_member_list(const MemberList& list);
// `older`: of a file, which may be an older program's.
Result<MemberList> parse_member_list(ByteView bytes, bool older = false);
Result<std::vector<std::uint8_t>> pack_list_change(const ListChange& change);
Result<ListChange> parse_list_change(ByteView bytes);

struct ChunkHead {
  std::uint64_t transfer = 0;
  std::uint64_t offset = 0;  // in the concatenation of the transfer's frames
};
struct ParsedChunk {
  ChunkHead head;
  ByteView payload;  // lives as long as the bytes parsed
};

// `pieces` are copied behind the head. REQUIRES: 1 .. kChunkBytesMax bytes in all.
Bytes pack_chunk(const ChunkHead& head, const std::vector<ByteView>& pieces);
// ERRORS: kTooLarge, kMalformed.
Result<ParsedChunk> parse_chunk(ByteView bytes);

}  // namespace shoal
