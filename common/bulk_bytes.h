#pragma once
// How many bytes this thread went through: cleared, copied, hashed, screened, summed. While a callback of a loop does
// that, the process neither reads, answers nor sends. So a callback goes through a little only; what goes through
// arrays of the state or payloads of a round runs on another thread, or in pieces between other callbacks. It is
// counted where it is done (Buffer, crc32c, Hasher, the sums of rounds), so that a test can hold every callback to a
// bound without a clock (SimLoop::most_bulk_bytes).
//
// Thread: each counts for itself.
#include <cstddef>
#include <cstdint>

namespace shoal {

// What may be done in a callback at a time: 5 ms of the slowest of it, BLAKE2b at 0.8 GB/s.
inline constexpr std::size_t kBulkBytesMax = 4u << 20;

inline std::uint64_t& bulk_bytes() {
  static thread_local std::uint64_t bytes = 0;
  return bytes;
}
inline void note_bulk(std::size_t bytes) { bulk_bytes() += bytes; }

// What is counted while it lives is another thread's, which the simulation runs on this one.
class BulkElsewhere {
 public:
  BulkElsewhere() = default;
  ~BulkElsewhere() { bulk_bytes() = before_; }
  BulkElsewhere(const BulkElsewhere&) = delete;
  BulkElsewhere& operator=(const BulkElsewhere&) = delete;

 private:
  std::uint64_t before_ = bulk_bytes();
};

}  // namespace shoal
