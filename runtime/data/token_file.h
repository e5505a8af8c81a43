#pragma once
// One file of a run's text: token ids of 8, 16 or 32 bits, little-endian, mapped read-only; alone, or behind the header
// of llm.c's shards (text/token_format.h); or a text whose bytes are the ids, without the byte order mark. What the
// header and the sidecar FILE.json say must fit what is expected, and so must what the bytes tell of themselves.
// Owns the mapping. Immutable once open; thread-safe. The file must not be cut while it is open.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/bytes.h"
#include "common/crypto/hash.h"
#include "common/result.h"
#include "common/tensor_view.h"
#include "text/token_format.h"

namespace shoal {

class TokenFile {
 public:
  // Reads the file once for its digest, and once more when the width allows ids beyond the vocabulary. ERRORS:
  // kMissing, kIo, kTooLarge, kInput (a size that is no whole number of ids, an id not below `vocabulary`: with offset
  // and the likely cause; a header or a sidecar that says otherwise; ids of 16 bits that were written as ids of 32;
  // ids of 8 bits that are packed, UTF-16 or another kind of file that has a name; no regular file, or an empty one).
  static Result<TokenFile> open(const std::string& path, DType width, std::uint32_t vocabulary);
  // For text that is in memory already; it has no sidecar.
  static Result<TokenFile> from_bytes(Bytes bytes, DType width, std::uint32_t vocabulary, const std::string& origin);

  const std::string& path() const { return path_; }
  TokenHeader header() const { return header_; }
  const std::optional<TokenSidecar>& sidecar() const { return sidecar_; }
  DType width() const { return width_; }
  std::uint64_t tokens() const { return ids_.size() / size_of(width_); }
  ByteView ids() const { return ids_; }
  const Digest& digest() const { return digest_; }  // BLAKE2b-256 of the file, its header too
  // REQUIRES: first + count <= tokens().
  ByteView tokens_at(std::uint64_t first, std::uint64_t count) const;

 private:
  TokenFile() = default;
  std::string path_;
  TokenHeader header_ = TokenHeader::kNone;
  std::optional<TokenSidecar> sidecar_;
  Bytes ids_;
  DType width_ = DType::kU8;
  Digest digest_;
};

}  // namespace shoal
