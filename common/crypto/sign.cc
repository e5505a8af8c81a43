#include "common/crypto/sign.h"

#include <sodium.h>

#include <algorithm>

namespace shoal {
namespace {

// libsodium wants it once before random numbers; later calls return at once.
void begin() { SHOAL_CHECK_LE(0, sodium_init()); }

}  // namespace

KeyPair KeyPair::generate() {
  std::array<std::uint8_t, 32> seed;
  fill_randomly(seed);
  KeyPair pair = from_seed(seed);
  wipe(seed);
  return pair;
}

KeyPair KeyPair::from_seed(const std::array<std::uint8_t, 32>& seed) {
  begin();
  KeyPair pair;
  auto* const page = static_cast<std::uint8_t*>(sodium_malloc(crypto_sign_ed25519_SECRETKEYBYTES));
  SHOAL_CHECK(page != nullptr);
  pair.secret_ = std::shared_ptr<const std::uint8_t>(page, [page](const std::uint8_t*) { sodium_free(page); });
  SHOAL_CHECK_EQ(crypto_sign_ed25519_seed_keypair(pair.id_.bytes.data(), page, seed.data()), 0);
  sodium_mprotect_readonly(page);
  return pair;
}

void fill_randomly(std::span<std::uint8_t> bytes) {
  begin();
  randombytes_buf(bytes.data(), bytes.size());
}

void wipe(std::span<std::uint8_t> secret) { sodium_memzero(secret.data(), secret.size()); }

std::array<std::uint8_t, 32> KeyPair::seed() const {
  std::array<std::uint8_t, 32> seed;
  std::copy_n(secret_.get(), seed.size(), seed.begin());
  return seed;
}

Signature KeyPair::sign(ByteView message) const {
  Signature signature;
  SHOAL_CHECK_EQ(crypto_sign_ed25519_detached(signature.data(), nullptr, message.data(), message.size(), secret_.get()),
                 0);
  return signature;
}

CurveKey KeyPair::curve_secret() const {
  CurveKey key;
  SHOAL_CHECK_EQ(crypto_sign_ed25519_sk_to_curve25519(key.data(), secret_.get()), 0);
  return key;
}

CurveKey KeyPair::curve_public() const {
  auto key = curve_public_of(id_);
  return key.value();
}

bool verify(const PeerId& signer, ByteView message, const Signature& signature) {
  return crypto_sign_ed25519_verify_detached(signature.data(), message.data(), message.size(), signer.bytes.data()) ==
         0;
}

Result<CurveKey> curve_public_of(const PeerId& peer) {
  CurveKey key;
  if (crypto_sign_ed25519_pk_to_curve25519(key.data(), peer.bytes.data()) != 0) {
    return make_error(ErrorCode::kMalformed, "key " + short_name(peer) + "... is no usable Ed25519 key");
  }
  return key;
}

}  // namespace shoal
