#include "common/os/program_start.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "common/os/posix_file.h"

namespace shoal {

void hold_standard_descriptors() {
  constexpr int kExitInputOutput = 74;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number, and those below are taken: it is `fd`.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) _exit(kExitInputOutput);
  }
}

void outlive_readers() { ::signal(SIGPIPE, SIG_IGN); }

Status forbid_core_files() {
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) == 0) return {};
  return error_of_errno("forbid", "core files (RLIMIT_CORE)", errno);
}

}  // namespace shoal
