#pragma once
// Records: signed claims as text. One line of compact JSON without spaces, so that any DHT tool shows it and passes it
// on (docs/dht.md).
//   {"v":1,"run":"<64 hex>","peer":"<64 hex>",...,"seq":N,"exp":<Unix seconds>,"sig":"<86 base64url>"}
// "sig" stands last. It is Ed25519 (RFC 8032) over kRecordDomain followed by all bytes before `,"sig":"`. The signer is
// "peer", or "run" in a run record.
//
// Pure functions over values; thread: any. Input is hostile: at most kRecordBytesMax bytes are looked at, nothing is
// allocated beyond a small multiple of that, no exception leaves. Packing (record_pack.cc), parse_peer_record and
// parse_run_record are declared in dht/peer_directory.h.
#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "common/crypto/sign.h"
#include "dht/peer_directory.h"

namespace shoal {

inline constexpr Duration kRecordTtl = 60s;     // from making to expiry; also how long a DHT node keeps it
inline constexpr Duration kRecordPeriod = 20s;  // how often who announces makes his record anew
inline constexpr Duration kClockSkewMax = 30s;  // by how much two honest clocks may differ
inline constexpr std::size_t kRecordAddressesMax = 3;
inline constexpr std::size_t kRecordAddressBytesMax = 72;
inline constexpr std::size_t kRecordNameBytesMax = 64;
inline constexpr std::size_t kRecordEndBytesMax = 64;  // longer reasons are cut
inline constexpr std::size_t kMemberRowBytes = 12;     // tag (8, big-endian), stage, place, quiet_s (2, big-endian)
inline constexpr std::string_view kRecordDomain = "shoal record 1\n";

using AnyRecord = std::variant<PeerRecord, RunRecord, StandingRecord>;

// For a reader that has no run key yet (a storing DHT node, a tool): checks form and signature and says what it is.
// ERRORS: kMalformed, kTooLarge, kCorrupt (signature).
Result<AnyRecord> parse_any_record(std::string_view text);

// A sequence for the record behind `last` (0: none in this life): wall-clock milliseconds, so that it is also above
// those of earlier lives.
inline std::uint64_t next_sequence(std::uint64_t last, WallTime now) {
  const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  return std::max(last + 1, static_cast<std::uint64_t>(wall));
}

std::string key_of(const AnyRecord& record);  // where it belongs: stage_key(), run_key_name() or standing_key()
PeerId signer_of(const AnyRecord& record);
std::uint64_t sequence_of(const AnyRecord& record);
WallTime expires_of(const AnyRecord& record);

// Not expired, allowing for clocks that differ.
inline bool is_live(WallTime expires, WallTime now) { return now < expires + kClockSkewMax; }
// Its maker missed two times to make it anew: what it says of the present is not so any more.
inline bool is_late(WallTime expires, WallTime now) { return now - (expires - kRecordTtl) > 2 * kRecordPeriod + 5s; }
// Made by a clock further ahead than honest ones are: such a record would outlive its maker.
inline bool is_from_future(WallTime expires, WallTime now) { return expires > now + kRecordTtl + kClockSkewMax; }

// "host:port" that can be dialled: a DNS name, an IPv4 address or an IPv6 address in brackets; port 1..65535; neither
// unspecified nor multicast; "+port" of a bulk lane may follow. ERRORS: kMalformed.
Status check_address(std::string_view address);

}  // namespace shoal
