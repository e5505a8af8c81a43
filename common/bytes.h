#pragma once
// Immutable bytes shared by count, their views, and aligned buffers to receive into.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal {

using ByteView = std::span<const std::uint8_t>;
using MutableByteView = std::span<std::uint8_t>;

inline constexpr std::size_t kBufferAlignment = 64;  // bytes; what vector kernels and BLAS want

// CRC-32C (Castagnoli), as iSCSI and ext4 use it; `seed` continues an earlier sum.
std::uint32_t crc32c(ByteView bytes, std::uint32_t seed = 0);
// The same by table, for processors without the instruction and as its specification.
std::uint32_t crc32c_portable(ByteView bytes, std::uint32_t seed = 0);

// Immutable once made. Thread-safe to copy and read; the release of the last copy may happen on any thread.
class Bytes {
 public:
  Bytes() = default;
  static Bytes copy_of(ByteView view);
  static Bytes copy_of(std::string_view text);
  static Bytes from_vector(std::vector<std::uint8_t> bytes);
  // Takes memory kept alive by `owner`.
  static Bytes wrap(std::shared_ptr<const void> owner, ByteView view);

  const std::uint8_t* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  ByteView view() const { return view_; }
  operator ByteView() const { return view_; }
  // Shares the owner. REQUIRES: offset + size <= this->size().
  Bytes slice(std::size_t offset, std::size_t size) const;
  // CRC-32C of all of it.
  std::uint32_t sum() const { return sum_ ? *sum_ : crc32c(view_); }
  // The same bytes, which know their sum: for large ones that a loop sends, perhaps to many, computed elsewhere.
  Bytes summed() const;

 private:
  std::shared_ptr<const void> owner_;
  ByteView view_;
  std::optional<std::uint32_t> sum_;
};

// Mutable, 64-byte aligned, zero-initialised; becomes Bytes without a copy. From kLargeBytes on it is neither cleared
// nor given back where it is made and dropped (common/large_memory.h).
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size);
  // For what fills slowly and was only announced: from kBulkBytesMax on it costs no time here and no memory before it
  // is touched, at the price of pages that are not used again.
  static Buffer on_demand(std::size_t size);
  std::uint8_t* data() { return memory_.get(); }
  const std::uint8_t* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  MutableByteView view() { return {memory_.get(), size_}; }
  // REQUIRES: size() % sizeof(T) == 0.
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(memory_.get()), size_ / sizeof(T)};
  }
  Bytes freeze() &&;

 private:
  void take_pages();
  std::shared_ptr<std::uint8_t> memory_;
  std::size_t size_ = 0;
};

template <class T>
ByteView bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}

}  // namespace shoal
