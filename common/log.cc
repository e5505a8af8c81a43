#include "common/log.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace shoal {
namespace {

struct LogState {
  std::atomic<LogLevel> level{LogLevel::kInfo};
  std::mutex mutex;
  std::string name;                     // guarded by mutex
  std::shared_ptr<const LogSink> sink;  // guarded by mutex
};

// Never destroyed: threads may still log while the process exits.
LogState& state() {
  static auto* const only = new LogState;
  return *only;
}

}  // namespace

void set_log_level(LogLevel level) { state().level.store(level, std::memory_order_relaxed); }
bool log_enabled(LogLevel level) { return level >= state().level.load(std::memory_order_relaxed); }

void set_log_name(std::string name) {
  const std::lock_guard lock(state().mutex);
  state().name = std::move(name);
}

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(state().mutex);
  state().sink = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
}

std::string printable(std::string_view text, std::size_t bytes_max) {
  static constexpr char kDigits[] = "0123456789abcdef";
  static constexpr std::string_view kCut = "...";
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      line += c;
    } else {
      line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    if (line.size() > bytes_max) {
      line.resize(bytes_max > kCut.size() ? bytes_max - kCut.size() : 0);
      return line.append(kCut.substr(0, bytes_max));
    }
  }
  return line;
}

void log_line(LogLevel level, std::string_view text) {
  if (!log_enabled(level)) return;
  std::string name;
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(state().mutex);
    name = state().name;
    sink = state().sink;
  }
  const std::string line = printable(name.empty() ? std::string(text) : name + ": " + std::string(text));
  if (sink) {
    (*sink)(level, line);
  } else {
    write_log_line(level, line);
  }
}

}  // namespace shoal
