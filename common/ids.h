#pragma once
// The names of things. Values: copy, compare, hash, print. Sizes are those on the wire (docs/WIRE.md).
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "common/result.h"

namespace shoal {

// A 32-byte public key or digest, printed as hex.
template <class Tag>
struct Key32 {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const Key32&) const = default;
};

using PeerId = Key32<struct PeerIdTag>;  // Ed25519 public key of a process; its CURVE key is derived from it
using RunId = Key32<struct RunIdTag>;    // Ed25519 public key of the run: the authority's PeerId
using Digest = Key32<struct DigestTag>;  // BLAKE2b-256

// An integer with a name of its own.
template <class Tag, class Rep>
struct StrongInt {
  Rep value{};
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep v) : value(v) {}
  auto operator<=>(const StrongInt&) const = default;
};
template <class Tag, class Rep>
std::ostream& operator<<(std::ostream& out, StrongInt<Tag, Rep> id) {
  return out << +id.value;
}

using StageId = StrongInt<struct StageIdTag, std::uint16_t>;
using SampleId = StrongInt<struct SampleIdTag, std::uint64_t>;  // one microbatch's worth of consecutive windows
using Version = StrongInt<struct VersionTag, std::uint64_t>;    // outer steps applied to a stage's anchor
using RoundId =
    StrongInt<struct RoundIdTag, std::uint64_t>;  // per stage, rising; never reused, also not after an abandoned round
using StepId = StrongInt<struct StepIdTag, std::uint64_t>;  // rule allreduce: global step of a microbatch
using Epoch = StrongInt<struct EpochTag, std::uint64_t>;    // of a stage's member list

// One life of a peer: the first 8 bytes of its PeerId (big-endian) and an incarnation drawn at random at start.
struct Session {
  std::uint64_t peer_tag = 0;
  std::uint64_t incarnation = 0;
  auto operator<=>(const Session&) const = default;
  static Session of(const PeerId& peer, std::uint64_t incarnation);
};

using EntrySerial = std::uint64_t;

// Names an entry; made by the peer that holds it. Serials are never reused in a session.
struct EntryName {
  Session session;
  EntrySerial serial = 0;
  auto operator<=>(const EntryName&) const = default;
};

// Names a holder's claim on one entry of the next stage; made by the holder.
struct Lease {
  Session session;
  std::uint64_t serial = 0;
  auto operator<=>(const Lease&) const = default;
};

struct MicrobatchId {
  std::uint64_t trainer = 0;  // incarnation-free: derived from the trainer's PeerId
  std::uint64_t serial = 0;   // rising
  auto operator<=>(const MicrobatchId&) const = default;
};

std::string hex_of(const std::uint8_t* bytes, std::size_t size);
template <class Tag>
std::string hex_of(const Key32<Tag>& key) {
  return hex_of(key.bytes.data(), key.bytes.size());
}
// The first 8 hex digits: for people.
template <class Tag>
std::string short_name(const Key32<Tag>& key) {
  return hex_of(key.bytes.data(), 4);
}
std::string short_name(const Session& session);
// ERRORS: kMalformed (not 64 hex digits).
Result<std::array<std::uint8_t, 32>> parse_hex32(std::string_view text);

template <class Tag>
std::ostream& operator<<(std::ostream& out, const Key32<Tag>& key) {
  return out << hex_of(key);
}
std::ostream& operator<<(std::ostream& out, const Session& session);
std::ostream& operator<<(std::ostream& out, const EntryName& entry_name);
std::ostream& operator<<(std::ostream& out, const Lease& lease);
std::ostream& operator<<(std::ostream& out, const MicrobatchId& id);

using WeightStamp = std::uint64_t;  // number of writes to the parameters so far; stamp s lives in buffer s % 2
enum class WindowSlot : std::uint8_t { kA = 0, kB = 1 };  // the two accumulators

// A 64-bit mix (SplitMix64's finaliser): for hash tables and for the tags below, not for security.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
constexpr std::uint64_t mix64(std::uint64_t a, std::uint64_t b) { return mix64(mix64(a) ^ b); }

// What the accumulators carry beside a gradient: sums of this, modulo 2^64, prove what was counted.
using CountTag = std::uint64_t;
constexpr CountTag count_tag(const MicrobatchId& id) { return mix64(id.trainer, id.serial); }

}  // namespace shoal

template <class Tag>
struct std::hash<shoal::Key32<Tag>> {
  std::size_t operator()(const shoal::Key32<Tag>& key) const noexcept {
    std::uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | key.bytes[static_cast<std::size_t>(i)];
    return shoal::mix64(word);
  }
};
template <class Tag, class Rep>
struct std::hash<shoal::StrongInt<Tag, Rep>> {
  std::size_t operator()(shoal::StrongInt<Tag, Rep> id) const noexcept {
    return shoal::mix64(static_cast<std::uint64_t>(id.value));
  }
};
template <>
struct std::hash<shoal::Session> {
  std::size_t operator()(const shoal::Session& s) const noexcept { return shoal::mix64(s.peer_tag, s.incarnation); }
};
template <>
struct std::hash<shoal::EntryName> {
  std::size_t operator()(const shoal::EntryName& t) const noexcept {
    return shoal::mix64(std::hash<shoal::Session>{}(t.session), t.serial);
  }
};
template <>
struct std::hash<shoal::Lease> {
  std::size_t operator()(const shoal::Lease& l) const noexcept {
    return shoal::mix64(std::hash<shoal::Session>{}(l.session), l.serial);
  }
};
template <>
struct std::hash<shoal::MicrobatchId> {
  std::size_t operator()(const shoal::MicrobatchId& m) const noexcept { return shoal::mix64(m.trainer, m.serial); }
};
