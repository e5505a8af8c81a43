#include "common/os/offspring.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"

namespace shoal {
namespace {

Result<Descriptor> open_output(const std::string& path) {
  if (path.empty()) return open_file("/dev/null", O_WRONLY | O_CLOEXEC);
  return open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC);
}

// Everything that allocates is made before the fork.
struct Prepared {
  std::vector<char*> words, variables;
  std::vector<std::string> texts;
};

Prepared prepare(const OffspringCommand& command) {
  Prepared result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (!command.environment.contains(std::string(text.substr(0, text.find('='))))) result.texts.emplace_back(text);
  }
  for (const auto& [name, value] : command.environment) result.texts.push_back(name + "=" + value);
  for (std::string& text : result.texts) result.variables.push_back(text.data());
  result.variables.push_back(nullptr);
  for (const std::string& word : command.words) result.words.push_back(const_cast<char*>(word.c_str()));
  result.words.push_back(nullptr);
  return result;
}

// In the child, between fork and exec: only calls that are safe there. Returns the error when there is one.
int become(const Prepared& prepared, int output, int error, int input, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it ended before we asked
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(error, 2) < 0) return errno;
  execve(prepared.words[0], prepared.words.data(), prepared.variables.data());
  return errno;
}

}  // namespace

Result<Offspring> Offspring::start(const OffspringCommand& command) {
  SHOAL_CHECK(!command.words.empty());
  SHOAL_ASSIGN(const Descriptor output, open_output(command.output_path));
  SHOAL_ASSIGN(const Descriptor error_file, open_output(command.error_path));
  const int error = command.error_descriptor >= 0 ? command.error_descriptor : error_file.get();
  SHOAL_ASSIGN(const Descriptor input, open_file("/dev/null", O_RDONLY | O_CLOEXEC));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return error_of_errno("make", "a pipe", errno);
  Descriptor read_end(ends[0]), write_end(ends[1]);
  const Prepared prepared = prepare(command);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return error_of_errno("start", command.words.front(), errno);
  if (pid == 0) {
    const int failure = become(prepared, output.get(), error, input.get(), parent);
    [[maybe_unused]] const ssize_t told = write(write_end.get(), &failure, sizeof failure);
    _exit(127);
  }
  Offspring child(pid);
  write_end = Descriptor();
  int failure = 0;
  ssize_t size;
  do {
    size = read(read_end.get(), &failure, sizeof failure);
  } while (size < 0 && errno == EINTR);
  if (size == 0) return child;  // closed by exec
  return error_of_errno("start", command.words.front(), failure);
}

Offspring::Offspring(Offspring&& other) noexcept : pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}

Offspring& Offspring::operator=(Offspring&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    code_ = other.code_;
  }
  return *this;
}

Offspring::~Offspring() { end(); }

void Offspring::end() {
  if (pid_ < 0 || code_) return;
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  code_ = 128 + SIGKILL;
}

bool Offspring::running() { return !exit_code(); }

std::optional<int> Offspring::exit_code() {
  if (code_ || pid_ < 0) return code_;
  int status = 0;
  const pid_t reaped = waitpid(pid_, &status, WNOHANG);
  if (reaped == pid_) code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return code_;
}

void Offspring::send_signal(int signal) {
  if (running()) kill(pid_, signal);
}

std::optional<int> Offspring::wait_until(TimePoint deadline) {
  // A pid descriptor is readable when the process has ended.
  const Descriptor ended(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  while (running()) {
    const Duration left = deadline - monotonic_now();
    if (left <= Duration(0)) return std::nullopt;
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, 1s)).count();
    pollfd wait{ended.get(), POLLIN, 0};
    poll(&wait, ended.get() < 0 ? 0 : 1,
         static_cast<int>(ended.get() < 0 ? std::min<long>(milliseconds, 20) : milliseconds));
  }
  return code_;
}

}  // namespace shoal
