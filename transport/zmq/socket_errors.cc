#include "transport/zmq/socket_errors.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace shoal {

int told_socket_error(int error) { return error == ENOPROTOOPT ? ECONNREFUSED : error; }

bool asked_by_libraries() {
  int (*const ours)(int, int, int, void*, socklen_t*) = &::getsockopt;
  return ::dlsym(RTLD_DEFAULT, "getsockopt") == reinterpret_cast<void*>(ours);
}

}  // namespace shoal

extern "C" __attribute__((visibility("default"))) int getsockopt(int fd, int level, int option, void* __restrict value,
                                                                 socklen_t* __restrict size) noexcept {
  const long outcome = ::syscall(SYS_getsockopt, fd, level, option, value, size);
  int error = 0;
  if (outcome == 0 && level == SOL_SOCKET && option == SO_ERROR && *size >= sizeof error) {
    std::memcpy(&error, value, sizeof error);
    error = shoal::told_socket_error(error);
    std::memcpy(value, &error, sizeof error);
  }
  return static_cast<int>(outcome);
}
