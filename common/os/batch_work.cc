#include "common/os/batch_work.h"

#include <malloc.h>
#include <sched.h>

#include <limits>

namespace shoal {

void begin_batch_work() {
  const sched_param no_priority{};
  (void)sched_setscheduler(0, SCHED_BATCH, &no_priority);
  constexpr int kLargestThreshold = 32 << 20;  // glibc refuses more
  // One heap: glibc gives other threads than the first heaps of 64 MiB that it unmaps whole when they are empty.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, kLargestThreshold);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace shoal
