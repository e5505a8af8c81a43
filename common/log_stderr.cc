// The log sink where spdlog is absent: one write to stderr a line.
#include <unistd.h>

#include <ctime>
#include <string>

#include "common/log.h"

namespace shoal {

void write_log_line(LogLevel level, std::string_view line) {
  static constexpr const char* kNames[] = {"debug: ", "", "warning: ", "error: "};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char stamp[32];
  const std::size_t length = std::strftime(stamp, sizeof stamp, "%H:%M:%S ", &parts);
  const std::string text = std::string(stamp, length) + kNames[static_cast<int>(level)] + std::string(line) + "\n";
  // A stderr that cannot take the line is nothing that we could report.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void write_file_line(LogLevel, std::string_view) {}

Status also_log_to(const std::string& path) {
  return make_error(ErrorCode::kUnsupported, "cannot log to " + path + ": this build has no spdlog");
}

}  // namespace shoal
