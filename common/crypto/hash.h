#pragma once
// BLAKE2b-256 (RFC 7693), whole, in pieces, and as a tree over 1 MiB chunks for what is fetched chunk by chunk.
// Thread: any; one Hasher belongs to one thread.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"

namespace shoal {

inline constexpr std::size_t kHashChunkBytes = 1u << 20;

Digest blake2b_256(ByteView bytes);

// A message authentication code: nobody without the key can make it.
Digest keyed_blake2b_256(const Digest& key, ByteView bytes);

// The same in pieces.
class Hasher {
 public:
  Hasher();
  void update(ByteView bytes);
  void update_u64(std::uint64_t value);  // 8 bytes, little-endian
  // Ends it. REQUIRES: called once, last.
  Digest finish();

 private:
  alignas(64) std::array<std::uint8_t, 384> state_;  // libsodium's, whose header stays in hash.cc
};

// Digests of the chunks of `bytes` (the last may be short; none for no bytes). A leaf is hashed under another
// personalisation than a root, so neither passes for the other.
Digest chunk_digest(ByteView chunk);
std::vector<Digest> chunk_digests(ByteView bytes, std::size_t chunk_bytes = kHashChunkBytes);
// Root over the leaves, the total size and the chunk size (each 8 bytes, little-endian, in front).
Digest tree_root(std::uint64_t total_bytes, std::span<const Digest> chunks, std::size_t chunk_bytes = kHashChunkBytes);
Digest tree_digest(ByteView bytes, std::size_t chunk_bytes = kHashChunkBytes);

}  // namespace shoal
