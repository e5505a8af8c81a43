#pragma once
// A machine's or a run's key: Ed25519 (RFC 8032) for signatures, and the Curve25519 pair derived from it for CURVE
// connections, so that one key names the process everywhere. Thread: any.
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"

namespace shoal {

using Signature = std::array<std::uint8_t, 64>;
using CurveKey = std::array<std::uint8_t, 32>;

// Owns a secret, in a page of its own that is never swapped out or dumped where the system lets it be locked
// (RLIMIT_MEMLOCK), and that is wiped when the last copy dies. Copies share it. What is handed out (seed(),
// curve_secret()) is in the caller's memory.
class KeyPair {
 public:
  static KeyPair generate();
  // The same seed gives the same pair; it is the whole secret and what a key file holds.
  static KeyPair from_seed(const std::array<std::uint8_t, 32>& seed);
  KeyPair(const KeyPair&) = default;  // and no move: one that gave its secret away could not sign
  KeyPair& operator=(const KeyPair&) = default;
  // Also a RunId's bytes, when the pair is a run's.
  const PeerId& id() const { return id_; }
  std::array<std::uint8_t, 32> seed() const;
  Signature sign(ByteView message) const;
  CurveKey curve_secret() const;
  CurveKey curve_public() const;

 private:
  KeyPair() = default;
  PeerId id_;
  std::shared_ptr<const std::uint8_t> secret_;  // 64 bytes in libsodium's layout: seed, then public key
};

// From the operating system: what nobody can guess.
void fill_randomly(std::span<std::uint8_t> bytes);

// Overwrites a secret that is needed no more, also where a compiler sees that nobody reads it again.
void wipe(std::span<std::uint8_t> secret);

// False for a signature that does not fit and for a key that is no point of the group.
bool verify(const PeerId& signer, ByteView message, const Signature& signature);
// The CURVE key of whoever holds `peer`. ERRORS: kMalformed (no usable Ed25519 key).
Result<CurveKey> curve_public_of(const PeerId& peer);

template <class Tag>
PeerId as_peer(const Key32<Tag>& key) {
  return {key.bytes};
}

}  // namespace shoal
