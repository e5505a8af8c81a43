#include "common/os/program_start.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "common/os/executable.h"
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

void start_anew_with(const char* name, const char* value, char* const words[]) {
  if (::getenv(name) != nullptr || ::setenv(name, value, 0) != 0) return;
  // By its own path, so that it is listed by its own name; by the link to it where that file was replaced meanwhile.
  if (const auto program = own_program(); program.ok()) ::execv(program->c_str(), words);
  ::execv("/proc/self/exe", words);
}

Status forbid_core_files() {
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) == 0) return {};
  return error_of_errno("forbid", "core files (RLIMIT_CORE)", errno);
}

}  // namespace shoal
