#include "common/crypto/hash.h"

#include <sodium.h>

#include <algorithm>
#include <new>

#include "common/bulk_bytes.h"
#include "common/byte_codec.h"
#include "common/check.h"

namespace shoal {
namespace {

using State = crypto_generichash_blake2b_state;
static_assert(sizeof(State) <= 384 && alignof(State) <= 64);

State& state_in(std::array<std::uint8_t, 384>& memory) { return *reinterpret_cast<State*>(memory.data()); }

// BLAKE2b's personalisation field has 16 bytes.
void begin_personal(State& state, const char (&personal)[17]) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(personal);
  SHOAL_CHECK_EQ(crypto_generichash_blake2b_init_salt_personal(&state, nullptr, 0, 32, nullptr, bytes), 0);
}

void add(State& state, ByteView bytes) {
  note_bulk(bytes.size());
  crypto_generichash_blake2b_update(&state, bytes.data(), bytes.size());
}

Digest end(State& state) {
  Digest digest;
  crypto_generichash_blake2b_final(&state, digest.bytes.data(), digest.bytes.size());
  return digest;
}

std::array<std::uint8_t, 8> little_endian(std::uint64_t value) {
  std::array<std::uint8_t, 8> bytes;
  put_le(bytes.data(), value);
  return bytes;
}

}  // namespace

Digest blake2b_256(ByteView bytes) {
  Hasher hasher;
  hasher.update(bytes);
  return hasher.finish();
}

Digest keyed_blake2b_256(const Digest& key, ByteView bytes) {
  State state;
  crypto_generichash_blake2b_init(&state, key.bytes.data(), key.bytes.size(), 32);
  add(state, bytes);
  return end(state);
}

Hasher::Hasher() {
  new (state_.data()) State;
  crypto_generichash_blake2b_init(&state_in(state_), nullptr, 0, 32);
}

void Hasher::update(ByteView bytes) { add(state_in(state_), bytes); }

void Hasher::update_u64(std::uint64_t value) { update(little_endian(value)); }

Digest Hasher::finish() { return end(state_in(state_)); }

Digest chunk_digest(ByteView chunk) {
  State state;
  begin_personal(state, "shoal tree leaf ");
  add(state, chunk);
  return end(state);
}

std::vector<Digest> chunk_digests(ByteView bytes, std::size_t chunk_bytes) {
  SHOAL_CHECK(chunk_bytes > 0);
  std::vector<Digest> digests;
  for (std::size_t offset = 0; offset < bytes.size(); offset += chunk_bytes) {
    digests.push_back(chunk_digest(bytes.subspan(offset, std::min(chunk_bytes, bytes.size() - offset))));
  }
  return digests;
}

Digest tree_root(std::uint64_t total_bytes, std::span<const Digest> chunks, std::size_t chunk_bytes) {
  State state;
  begin_personal(state, "shoal tree root ");
  add(state, little_endian(total_bytes));
  add(state, little_endian(chunk_bytes));
  for (const Digest& chunk : chunks) add(state, chunk.bytes);
  return end(state);
}

Digest tree_digest(ByteView bytes, std::size_t chunk_bytes) {
  return tree_root(bytes.size(), chunk_digests(bytes, chunk_bytes), chunk_bytes);
}

}  // namespace shoal
