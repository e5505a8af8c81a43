// Alone, because the kernel's header and glibc's <sched.h> both define sched_param on Debian 12.
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/batch_work.h"

namespace shoal {

void take_long_slices() {
  sched_attr attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.sched_runtime = 20'000'000;  // ns
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace shoal
