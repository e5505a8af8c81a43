#include "common/bytes.h"

#include <array>
#include <new>

#include "common/bulk_bytes.h"
#include "common/check.h"
#include "common/large_memory.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace shoal {
namespace {

constexpr std::uint32_t kCastagnoli = 0x82f63b78u;  // reflected polynomial

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t sum = i;
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1u) ? sum >> 1 ^ kCastagnoli : sum >> 1;
    table[i] = sum;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

std::uint32_t crc32c_table(ByteView bytes, std::uint32_t sum) {
  for (const std::uint8_t byte : bytes) sum = sum >> 8 ^ kTable[(sum ^ byte) & 0xffu];
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(ByteView bytes, std::uint32_t sum) {
  std::uint64_t wide = sum;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  sum = static_cast<std::uint32_t>(wide);
  for (; i < bytes.size(); ++i) sum = _mm_crc32_u8(sum, bytes[i]);
  return sum;
}
#endif

}  // namespace

Bytes Bytes::copy_of(ByteView view) {
  Buffer buffer(view.size());
  if (!view.empty()) std::memcpy(buffer.data(), view.data(), view.size());
  note_bulk(view.size());
  return std::move(buffer).freeze();
}

Bytes Bytes::copy_of(std::string_view text) {
  return copy_of(ByteView(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

Bytes Bytes::from_vector(std::vector<std::uint8_t> bytes) {
  auto owner = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  const ByteView view(owner->data(), owner->size());
  return wrap(std::move(owner), view);
}

Bytes Bytes::wrap(std::shared_ptr<const void> owner, ByteView view) {
  Bytes bytes;
  bytes.owner_ = std::move(owner);
  bytes.view_ = view;
  return bytes;
}

Bytes Bytes::slice(std::size_t offset, std::size_t size) const {
  SHOAL_CHECK_LE(offset, view_.size());
  SHOAL_CHECK_LE(size, view_.size() - offset);
  return wrap(owner_, view_.subspan(offset, size));
}

Bytes Bytes::summed() const {
  Bytes bytes = *this;
  bytes.sum_ = sum();
  return bytes;
}

Buffer::Buffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  if (size >= kLargeBytes) {
    take_pages();
    return;
  }
  void* memory = ::operator new (size, std::align_val_t{kBufferAlignment});
  std::memset(memory, 0, size);
  note_bulk(size);
  memory_ = std::shared_ptr<std::uint8_t>(static_cast<std::uint8_t*>(memory), [](std::uint8_t* p) {
    ::operator delete (p, std::align_val_t{kBufferAlignment});
  });
}

void Buffer::take_pages() {
  memory_ =
      std::shared_ptr<std::uint8_t>(take_large(size_), [size = size_](std::uint8_t* p) { give_back_large(p, size); });
}

Buffer Buffer::on_demand(std::size_t size) {
  if (size < kBulkBytesMax) return Buffer(size);
  Buffer buffer;
  buffer.size_ = size;
  buffer.take_pages();
  return buffer;
}

Bytes Buffer::freeze() && {
  const ByteView view(memory_.get(), size_);
  size_ = 0;
  return Bytes::wrap(std::move(memory_), view);
}

std::uint32_t crc32c(ByteView bytes, std::uint32_t seed) {
  note_bulk(bytes.size());
#if defined(__x86_64__)
  static const bool hardware = __builtin_cpu_supports("sse4.2");
  if (hardware) return ~crc32c_sse42(bytes, ~seed);
#endif
  return crc32c_portable(bytes, seed);
}

std::uint32_t crc32c_portable(ByteView bytes, std::uint32_t seed) { return ~crc32c_table(bytes, ~seed); }

}  // namespace shoal
