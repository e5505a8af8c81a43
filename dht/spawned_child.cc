#include "dht/spawned_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

extern char** environ;

namespace shoal {
namespace {

Error system_error(const std::string& what, int number) {
  return make_error(ErrorCode::kIo, "DHT child: " + what + ": " + std::strerror(number));
}

std::string cause_of(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit " + std::to_string(WEXITSTATUS(status));
}

// True when the process ended within `grace`.
bool wait_for_end(int process_id, Duration grace) {
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process_id, 0));
  if (descriptor < 0) return false;
  pollfd watch{descriptor, POLLIN, 0};
  const int ready = poll(&watch, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(grace).count()));
  close(descriptor);
  return ready > 0;
}

}  // namespace

Result<SpawnedChild> SpawnedChild::spawn(const std::vector<std::string>& arguments) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return system_error("socketpair", errno);
  fcntl(pair[0], F_SETFL, O_NONBLOCK);

  // posix_spawn shares our memory until exec: a fork would copy the page tables of all the weights.
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
  posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  pid_t process_id = 0;
  const int failed = posix_spawn(&process_id, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(pair[1]);
  if (failed != 0) {
    close(pair[0]);
    return system_error("cannot start " + arguments[0], failed);
  }
  return SpawnedChild(process_id, pair[0]);
}

SpawnedChild::SpawnedChild(SpawnedChild&& other) noexcept
    : process_id_(std::exchange(other.process_id_, 0)), socket_(std::exchange(other.socket_, -1)) {}

SpawnedChild::~SpawnedChild() { end(2s); }

void SpawnedChild::kill_now() {
  if (process_id_ != 0) ::kill(process_id_, SIGKILL);
}

std::string SpawnedChild::end(Duration grace) {
  if (socket_ >= 0) close(std::exchange(socket_, -1));
  if (process_id_ == 0) return "reaped";
  if (!wait_for_end(process_id_, grace)) kill_now();
  int status = 0;
  while (waitpid(process_id_, &status, 0) < 0 && errno == EINTR) {
  }
  process_id_ = 0;
  return cause_of(status);
}

}  // namespace shoal
