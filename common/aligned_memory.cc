#include "common/aligned_memory.h"

#include <new>

#include "common/bytes.h"

namespace shoal {
namespace {

// In front of what is given out stands where its memory begins.
constexpr std::size_t kBefore = sizeof(void*) + kBufferAlignment - 1;

}  // namespace

std::uint8_t* take_aligned(std::size_t bytes) {
  void* const whole = ::operator new(bytes + kBefore);
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(whole) + kBefore;
  auto* const memory = reinterpret_cast<std::uint8_t*>(first - first % kBufferAlignment);
  reinterpret_cast<void**>(memory)[-1] = whole;
  return memory;
}

void give_back_aligned(std::uint8_t* memory) { ::operator delete(reinterpret_cast<void**>(memory)[-1]); }

}  // namespace shoal
