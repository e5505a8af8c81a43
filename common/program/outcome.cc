#include "common/program/outcome.h"

#include <poll.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/log.h"
#include "common/status_line.h"

namespace shoal {
namespace {

Error no_output(int cause) {
  return make_error(ErrorCode::kIo, std::string("stdout cannot be written") +
                                        (cause == 0 ? "" : std::string(" (") + std::strerror(cause) + ")") +
                                        ": what was printed there is lost or cut. HINT: keep it open, or free space "
                                        "where it leads");
}

}  // namespace

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInput:
    case ErrorCode::kMalformed:
    case ErrorCode::kTooLarge:
    case ErrorCode::kCorrupt:
    case ErrorCode::kNonFinite:
    case ErrorCode::kForeign:
      return kExitBadInput;
    case ErrorCode::kMissing:
      return kExitMissing;
    case ErrorCode::kNoPeer:
    case ErrorCode::kUnreachable:
    case ErrorCode::kUnsupported:
    case ErrorCode::kGone:
      return kExitUnavailable;
    case ErrorCode::kTimeout:
    case ErrorCode::kBusy:
    case ErrorCode::kClosed:
      return kExitTryAgain;
    case ErrorCode::kVersion:
      return kExitVersion;
    case ErrorCode::kRefused:
    case ErrorCode::kNotAdmitted:
    case ErrorCode::kStale:
      return kExitRefused;
    case ErrorCode::kIo:
      return kExitIo;
    case ErrorCode::kOutput:
      return kExitCannotCreate;
    case ErrorCode::kInterrupted:
      return kExitInterrupted;
  }
  return kExitFailed;
}

int fail(const Error& error, ExitCode code) {
  end_status();
  std::fprintf(stderr, "shoal: %s\n", printable(error.message, 4 * kLogLineBytesMax).c_str());
  return code;
}

int fail(const Error& error) { return fail(error, static_cast<ExitCode>(exit_code_of(error.code))); }

int fail_config(const Error& error) {
  const bool wrong =
      error.code == ErrorCode::kInput || error.code == ErrorCode::kUnsupported || error.code == ErrorCode::kTooLarge;
  return wrong ? fail(error, kExitConfig) : fail(error);
}

Status check_output() {
  if (::write(STDOUT_FILENO, "", 0) < 0) return no_output(errno);
  pollfd reader{STDOUT_FILENO, 0, 0};  // an empty write does not ask a pipe or a socket for its reader
  const bool gone = ::poll(&reader, 1, 0) > 0 && (reader.revents & (POLLERR | POLLHUP)) != 0;
  return gone ? no_output(EPIPE) : Status();
}

Status write_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  const int cause = errno;  // 0: an earlier flush failed, and what it had is gone
  __fpurge(stdout);         // else every later flush would try it again
  std::clearerr(stdout);
  return no_output(cause);
}

int with_output_written(int code) {
  const Status written = write_output();
  if (written.ok()) return code;
  fail(written.error());
  return code == kExitOk ? kExitIo : code;
}

}  // namespace shoal
