#pragma once
// As Buffer (common/bytes.h), but not cleared: for what is written as a whole before anybody reads it, as a frame or a
// decoded tensor is. From kLargeBytes on it is a Buffer, whose pages the kernel clears.
#include "common/aligned_memory.h"
#include "common/bytes.h"
#include "common/large_memory.h"

namespace shoal {

class UnclearedMemory {
 public:
  explicit UnclearedMemory(std::size_t size) : size_(size) {
    if (size >= kLargeBytes) {
      large_ = Buffer(size);
    } else if (size > 0) {
      memory_ = std::shared_ptr<std::uint8_t>(take_aligned(size), give_back_aligned);
    }
  }
  std::uint8_t* data() { return memory_ ? memory_.get() : large_.data(); }
  MutableByteView view() { return {data(), size_}; }
  Bytes freeze() && {
    if (!memory_) return std::move(large_).freeze();
    const ByteView written = view();
    return Bytes::wrap(std::move(memory_), written);
  }

 private:
  std::size_t size_;
  std::shared_ptr<std::uint8_t> memory_;
  Buffer large_;
};

}  // namespace shoal
