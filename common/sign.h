#pragma once
// A machine's or a run's key: Ed25519 (RFC 8032) for signatures, and the Curve25519 pair derived from it for CURVE
// connections, so that one key names the process everywhere. Thread: any.
#include <array>
#include <cstdint>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"

namespace shoal {

using Signature = std::array<std::uint8_t, 64>;
using CurveKey = std::array<std::uint8_t, 32>;

// Owns a secret; it is wiped when the object dies. Copies are deliberate and wiped too.
class KeyPair {
 public:
  static KeyPair generate();
  // The same seed gives the same pair; it is the whole secret and what a key file holds.
  static KeyPair from_seed(const std::array<std::uint8_t, 32>& seed);
  KeyPair(const KeyPair&) = default;
  KeyPair& operator=(const KeyPair&) = default;
  ~KeyPair();

  // Also a RunId's bytes, when the pair is a run's.
  const PeerId& id() const { return id_; }
  std::array<std::uint8_t, 32> seed() const;
  Signature sign(ByteView message) const;
  CurveKey curve_secret() const;
  CurveKey curve_public() const;

 private:
  KeyPair() = default;
  PeerId id_;
  std::array<std::uint8_t, 64> secret_{};  // libsodium's layout: seed, then public key
};

// False for a signature that does not fit and for a key that is no point of the group.
bool verify(const PeerId& signer, ByteView message, const Signature& signature);
// The CURVE key of whoever holds `peer`. ERRORS: kMalformed (no usable Ed25519 key).
Result<CurveKey> curve_public_of(const PeerId& peer);

template <class Tag>
PeerId as_peer(const Key32<Tag>& key) {
  return {key.bytes};
}

}  // namespace shoal
