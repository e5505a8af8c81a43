#pragma once
// The text of a run: headerless token ids of 8, 16 or 32 bits, little-endian, mapped read-only.
// Owns the mapping. Immutable once open; thread-safe. The file must not be cut while it is open.
#include <cstdint>
#include <memory>
#include <string>

#include "common/bytes.h"
#include "common/crypto/hash.h"
#include "common/result.h"
#include "common/tensor_view.h"

namespace shoal {

class TokenFile {
 public:
  // Reads every id once when the width allows ids beyond the vocabulary. ERRORS: kMissing, kIo, kInput (a size that is
  // no whole number of ids, an id not below `vocabulary`: with offset and the likely cause; no regular file, or an
  // empty one).
  static Result<TokenFile> open(const std::string& path, DType width, std::uint32_t vocabulary);
  // For text that is in memory already.
  static Result<TokenFile> from_bytes(Bytes bytes, DType width, std::uint32_t vocabulary, const std::string& origin);

  DType width() const { return width_; }
  std::uint64_t tokens() const { return bytes_.size() / size_of(width_); }
  ByteView bytes() const { return bytes_; }
  Digest digest() const;  // BLAKE2b-256 of the file; reads all of it
  // REQUIRES: first + count <= tokens().
  ByteView tokens_at(std::uint64_t first, std::uint64_t count) const;

 private:
  TokenFile(Bytes bytes, DType width) : bytes_(std::move(bytes)), width_(width) {}
  Bytes bytes_;
  DType width_;
};

}  // namespace shoal
