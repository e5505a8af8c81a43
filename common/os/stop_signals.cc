#include "common/os/stop_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "common/os/posix_file.h"

namespace shoal {

namespace {

constexpr char kNoSignal = 0;
std::atomic<int> first_signal{0};
std::atomic<bool> loop_hears{false};
int signal_pipe[2] = {-1, -1};  // written by the handler for the loop; made once, kept for the life of the process
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
  const int kept = errno;
  int none = 0;
  const bool first = first_signal.compare_exchange_strong(none, signal);
  const char byte = static_cast<char>(signal);
  if (loop_hears) [[maybe_unused]]
    const auto written = ::write(signal_pipe[1], &byte, 1);
  else if (!first)
    _exit(stop_exit_code());
  errno = kept;
}

void handle(void (*action)(int)) {
  struct sigaction wanted = {};
  wanted.sa_handler = action;
  wanted.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &wanted, nullptr);
  }
}

}  // namespace

void listen_for_stop() { handle(on_signal); }

bool stop_wanted() { return first_signal != 0; }

int stop_exit_code() { return 128 + (stop_wanted() ? first_signal.load() : SIGINT); }

Result<std::unique_ptr<StopSignals>> StopSignals::listen(EventLoop& loop, std::function<void()> first,
                                                         std::function<void()> again) {
  if (signal_pipe[0] < 0 && ::pipe2(signal_pipe, O_CLOEXEC) != 0)
    return error_of_errno("make a pipe for", "signals", errno);
  std::unique_ptr<StopSignals> signals(new StopSignals(loop, std::move(first), std::move(again)));
  loop_hears = true;
  handle(on_signal);
  return signals;
}

StopSignals::StopSignals(EventLoop& loop, std::function<void()> first, std::function<void()> again)
    : loop_(loop), first_(std::move(first)), again_(std::move(again)), thread_([this] { read_signals(); }) {}

StopSignals::~StopSignals() {
  handle(SIG_DFL);
  [[maybe_unused]] const auto written = ::write(signal_pipe[1], &kNoSignal, 1);
  thread_.join();
  loop_hears = false;
}

void StopSignals::read_signals() {
  for (int heard = 0;;) {
    pollfd wait{signal_pipe[0], POLLIN, 0};
    const int patience =
        heard < 2 ? -1 : static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count());
    const int ready = ::poll(&wait, 1, patience);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) _exit(stop_exit_code());
    char byte = kNoSignal;
    if (::read(signal_pipe[0], &byte, 1) != 1) continue;
    if (byte == kNoSignal) return;
    loop_.post(++heard == 1 ? first_ : again_);
  }
}

}  // namespace shoal
