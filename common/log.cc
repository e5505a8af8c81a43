#include "common/log.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "common/status_line.h"

namespace shoal {
namespace {

struct LogState {
  std::atomic<LogLevel> level{LogLevel::kInfo};
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink;  // guarded by mutex
};

// Never destroyed: threads may still log while the process exits.
LogState& state() {
  static auto* const only = new LogState;
  return *only;
}

// The size of the UTF-8 character at the start of `text`; 0 when there is none, or none that may be shown: a terminal
// obeys the control characters U+0080..U+009F, encoded or as single bytes, like those below U+0020.
std::size_t printable_prefix(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t size = first >= 0xf5 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (size == 0 || text.size() < size) return 0;
  std::uint32_t character = first & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3fu);
  }
  static constexpr std::uint32_t kSmallest[] = {0, 0, 0xa0, 0x800, 0x10000};  // below: C1, or written too long
  const bool surrogate = character >= 0xd800 && character <= 0xdfff;
  return character >= kSmallest[size] && character <= 0x10ffff && !surrogate ? size : 0;
}

void append_escaped(char c, std::string& line) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// Not in the middle of a character.
void cut_to(std::size_t size, std::string& line) {
  while (size > 0 && (static_cast<unsigned char>(line[size]) & 0xc0) == 0x80) --size;
  line.resize(size);
}

}  // namespace

void set_log_level(LogLevel level) { state().level.store(level, std::memory_order_relaxed); }
bool log_enabled(LogLevel level) { return level >= state().level.load(std::memory_order_relaxed); }

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(state().mutex);
  state().sink = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
}

std::string printable(std::string_view text, std::size_t bytes_max) {
  static constexpr std::string_view kCut = "...";
  std::string line;
  while (!text.empty()) {
    const std::size_t size = printable_prefix(text);
    if (size > 0) {
      line += text.substr(0, size);
    } else {
      append_escaped(text.front(), line);
    }
    text.remove_prefix(std::max<std::size_t>(1, size));
    if (line.size() > bytes_max) {
      cut_to(bytes_max > kCut.size() ? bytes_max - kCut.size() : 0, line);
      return line.append(kCut.substr(0, bytes_max));
    }
  }
  return line;
}

void log_line(LogLevel level, std::string_view text) {
  if (!log_enabled(level)) return;
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(state().mutex);
    sink = state().sink;
  }
  const std::string line = printable(text);
  if (sink) return (*sink)(level, line);
  const StatusHidden hidden;
  write_log_line(level, line);
}

}  // namespace shoal
