#pragma once
// The bytes of a file from its beginning to its end, as they are or decompressed: gzip (RFC 1952, also several members
// behind each other, and zeros behind the last one), Zstandard (RFC 8878, also several frames). A file is packed that
// begins so, whatever its name, and must be where it is called .gz or .zst. Memory does not depend on the content: what
// expands without end costs time only. One thread at a time.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"

namespace shoal {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // ERRORS: kMissing, kIo, kInput (no regular file).
  static Result<std::unique_ptr<ByteSource>> open(const std::string& path);

  // Fills the beginning of `into`; 0: the end. ERRORS: kIo, kCorrupt (damaged or cut), kUnsupported (a window of .zst
  // that is larger than 128 MiB). REQUIRES: !into.empty().
  virtual Result<std::size_t> read(MutableByteView into) = 0;
  // Bytes of the file itself that were read so far.
  virtual std::uint64_t taken() const = 0;
};

// The name without .gz or .zst: what its next ending says is about the content.
std::string name_of_content(const std::string& path);

// What the files have on the disk, for headway: nothing of one that cannot be asked.
std::uint64_t bytes_of_files(const std::vector<std::string>& files);

}  // namespace shoal
