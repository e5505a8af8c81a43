#include "common/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "common/log.h"

namespace shoal {
namespace {

constexpr std::string_view kErase = "\r\x1b[K";  // to the line's first column, and what stands on it away

struct Screen {
  std::mutex mutex;
  std::string status;                           // stands on the screen; guarded by mutex
  std::function<void(std::string_view)> write;  // a test's; guarded by mutex
  std::size_t columns = 0;                      // of the test's terminal; guarded by mutex
};

// Never destroyed: threads may still log while the process exits.
Screen& screen() {
  static auto* const only = new Screen;
  return *only;
}

// 0: stderr is no terminal. REQUIRES: the mutex is held.
std::size_t terminal_columns() {
  if (screen().write) return screen().columns;
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (!terminal) return 0;
  winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kLineColumns;
}

void draw(std::string_view bytes) {
  if (screen().write) return screen().write(bytes);
  // A terminal that takes nothing is nothing that we could report.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
}

std::size_t columns_within(std::size_t terminal) {
  return terminal == 0 ? kLineColumns - kTimeColumns : std::min(terminal, kLineColumns) - 1;
}

}  // namespace

bool status_in_place() {
  const std::lock_guard lock(screen().mutex);
  return terminal_columns() > 0;
}

std::size_t status_columns() {
  const std::lock_guard lock(screen().mutex);
  return columns_within(terminal_columns());
}

void show_status(std::string_view text) {
  if (!log_enabled(LogLevel::kInfo)) return;
  std::string line;
  {
    const std::lock_guard lock(screen().mutex);
    const std::size_t terminal = terminal_columns();
    line = printable(text, columns_within(terminal));
    if (terminal > 0) {
      screen().status = line;
      draw(std::string(kErase) + line);
      return write_file_line(LogLevel::kInfo, line);
    }
  }
  log_line(LogLevel::kInfo, line);
}

void end_status() {
  const std::lock_guard lock(screen().mutex);
  if (!std::exchange(screen().status, {}).empty()) draw("\n");
}

void set_status_terminal(std::function<void(std::string_view)> write, std::size_t columns) {
  const std::lock_guard lock(screen().mutex);
  screen().write = std::move(write);
  screen().columns = columns;
  screen().status.clear();
}

StatusHidden::StatusHidden() {
  screen().mutex.lock();
  if (!screen().status.empty()) draw(kErase);
}

StatusHidden::~StatusHidden() {
  if (!screen().status.empty()) draw(screen().status);
  screen().mutex.unlock();
}

}  // namespace shoal
