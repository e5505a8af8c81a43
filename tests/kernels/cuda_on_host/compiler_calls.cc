// What the compiler calls in front of each access to memory (-fsanitize=thread) and at each vector that is not aligned
// (-fsanitize=alignment) of the sources that it is told to. The names are those of its run-time libraries, which are
// not linked.
#include <cstdint>
#include <cstring>

#include "tests/kernels/cuda_on_host/host_grid.h"

using shoal::cuda_on_host::Access;
using shoal::cuda_on_host::seen;
using shoal::cuda_on_host::seen_misaligned;

extern "C" {
#define SHOAL_SEEN(bytes)                                                         \
  void __tsan_read##bytes(void* at) { seen(at, bytes, Access::kRead); }           \
  void __tsan_write##bytes(void* at) { seen(at, bytes, Access::kWrite); }         \
  void __tsan_unaligned_read##bytes(void* at) { seen(at, bytes, Access::kRead); } \
  void __tsan_unaligned_write##bytes(void* at) { seen(at, bytes, Access::kWrite); }
SHOAL_SEEN(1)
SHOAL_SEEN(2)
SHOAL_SEEN(4)
SHOAL_SEEN(8)
SHOAL_SEEN(16)
#undef SHOAL_SEEN
void __tsan_read_range(void* at, std::size_t bytes) { seen(at, bytes, Access::kRead); }
void __tsan_write_range(void* at, std::size_t bytes) { seen(at, bytes, Access::kWrite); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  seen(from, bytes, Access::kRead);
  seen(to, bytes, Access::kWrite);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  seen(to, bytes, Access::kWrite);
  return std::memset(to, value, bytes);
}

struct MisalignedPlace {
  const char* file;
  std::uint32_t line, column;
  const void* type;
  unsigned char alignment_log2, how;
};
void __ubsan_handle_type_mismatch_v1(const MisalignedPlace* place, const void* at) {
  seen_misaligned(place->file, place->line, at, 1u << place->alignment_log2);
}
}  // extern "C"
