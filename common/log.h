#pragma once
// Lines for people, on stderr. One line is one write, at most kLogLineBytesMax, control characters escaped: peers
// choose some of the text. Never log keys or tickets. Thread: any.
//   log_info("peer ", peer, " serves stage ", stage);
#include <functional>
#include <sstream>
#include <string>
#include <string_view>

#include "common/result.h"

namespace shoal {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

inline constexpr std::size_t kLogLineBytesMax = 1024;

// Lines below `level` are dropped; kInfo at start.
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);
// Replaces stderr, for tests; an empty function restores it. `sink` gets the finished line (escaped, capped, without
// time) and must not log.
using LogSink = std::function<void(LogLevel, std::string_view)>;
void set_log_sink(LogSink sink);

void log_line(LogLevel level, std::string_view text);
// What log_line makes of untrusted text: control characters (C0, DEL, C1) and bytes that are no UTF-8 become \xNN, what
// is over the limit ends in "...".
std::string printable(std::string_view text, std::size_t bytes_max = kLogLineBytesMax);

template <class... Parts>
void log_parts(LogLevel level, const Parts&... parts) {
  if (!log_enabled(level)) return;
  std::ostringstream text;
  (text << ... << parts);
  log_line(level, text.view());
}
template <class... Parts>
void log_debug(const Parts&... parts) {
  log_parts(LogLevel::kDebug, parts...);
}
template <class... Parts>
void log_info(const Parts&... parts) {
  log_parts(LogLevel::kInfo, parts...);
}
template <class... Parts>
void log_warning(const Parts&... parts) {
  log_parts(LogLevel::kWarning, parts...);
}
template <class... Parts>
void log_error(const Parts&... parts) {
  log_parts(LogLevel::kError, parts...);
}

// Writes every line to this file too; at 16 MiB it is rotated to PATH.1 ... PATH.3 (before the extension). Once, before
// there are other threads. ERRORS: kIo; kUnsupported where spdlog is absent.
Status also_log_to(const std::string& path);

// The sink of this build: log_spdlog.cc, or log_stderr.cc where spdlog is absent. On stderr a line has the time of day
// in front, and its level where that is not info; in the file both with the date. `line` is finished. Internal.
void write_log_line(LogLevel level, std::string_view line);
// To the file of also_log_to() alone: what a terminal shows in place (common/status_line.h).
void write_file_line(LogLevel level, std::string_view line);

}  // namespace shoal
