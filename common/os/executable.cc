#include "common/os/executable.h"

#include <unistd.h>

#include <cerrno>

#include "common/os/posix_file.h"

namespace shoal {

Result<std::string> own_program() {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0 || size == sizeof path)
    return error_of_errno("read", "/proc/self/exe", size < 0 ? errno : ENAMETOOLONG);
  return std::string(path, static_cast<std::size_t>(size));
}

Result<std::string> beside_own_program(const std::string& program) {
  SHOAL_ASSIGN(const std::string own, own_program());
  return own.substr(0, own.rfind('/') + 1) + program;
}

}  // namespace shoal
