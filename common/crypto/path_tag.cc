#include "common/crypto/path_tag.h"

#include <string_view>

#include "common/byte_codec.h"
#include "common/crypto/hash.h"

namespace shoal {

Digest path_secret_of(const KeyPair& run) {
  constexpr std::string_view kText = "shoal path secret 1\n";
  return blake2b_256(run.sign({reinterpret_cast<const std::uint8_t*>(kText.data()), kText.size()}));
}

Digest path_key_of(const Digest& secret, const Session& session) {
  std::array<std::uint8_t, 16> bytes;
  put_le(bytes.data(), session.peer_tag);
  put_le(bytes.data() + 8, session.incarnation);
  return keyed_blake2b_256(secret, bytes);
}

std::uint64_t path_tag(const Digest& key, const MicrobatchId& microbatch, EntrySerial serial) {
  std::array<std::uint8_t, 24> bytes;
  put_le(bytes.data(), microbatch.trainer);
  put_le(bytes.data() + 8, microbatch.serial);
  put_le(bytes.data() + 16, serial);
  return get_le<std::uint64_t>(keyed_blake2b_256(key, bytes).bytes, 0);
}

}  // namespace shoal
