#include "common/bytes.h"

#include "common/aligned_memory.h"
#include "common/bulk_bytes.h"
#include "common/check.h"
#include "common/large_memory.h"

namespace shoal {
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
  memory_ = std::shared_ptr<std::uint8_t>(take_aligned(size), give_back_aligned);
  std::memset(memory_.get(), 0, size);
  note_bulk(size);
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

}  // namespace shoal
