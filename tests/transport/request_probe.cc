#include "tests/transport/request_probe.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t total_requested = 0;
thread_local std::size_t largest_request = 0;

void note(std::size_t size) {
  total_requested += size;
  largest_request = std::max(largest_request, size);
}
}  // namespace

extern "C" {
void* __real_malloc(std::size_t size);
void* __real_realloc(void* memory, std::size_t size);
void* __real_calloc(std::size_t count, std::size_t size);
void* __wrap_malloc(std::size_t size) {
  note(size);
  return __real_malloc(size);
}
void* __wrap_realloc(void* memory, std::size_t size) {
  note(size);
  return __real_realloc(memory, size);
}
void* __wrap_calloc(std::size_t count, std::size_t size) {
  note(count * size);
  return __real_calloc(count, size);
}
}

void* operator new(std::size_t size) {
  note(size);
  if (void* memory = __real_malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  note(size);
  const auto wanted = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(wanted, (size + wanted - 1) / wanted * wanted)) return memory;
  throw std::bad_alloc();
}
// libzmq allocates by these.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return __real_malloc(size == 0 ? 1 : size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return __real_malloc(size == 0 ? 1 : size); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace shoal {

RequestProbe::RequestProbe() { total_requested = largest_request = 0; }
std::size_t RequestProbe::total() const { return total_requested; }
std::size_t RequestProbe::largest() const { return largest_request; }

}  // namespace shoal
