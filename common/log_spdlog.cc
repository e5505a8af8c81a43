// The log sink of the whole build: spdlog on stderr and, when asked for, in a rotated file; each line flushed.
#include "common/log.h"

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace shoal {
namespace {

constexpr std::size_t kFileBytesMax = 16u << 20;
constexpr std::size_t kOlderFiles = 3;
constexpr char kPattern[] = "%Y-%m-%d %H:%M:%S.%e %^%-7l%$ %v";

spdlog::logger& logger() {
  // Never destroyed: threads may still log while the process exits.
  static auto* const only = [] {
    auto* made = new spdlog::logger("shoal", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_level(spdlog::level::trace);
    made->set_pattern(kPattern);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *only;
}

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

Status also_log_to(const std::string& path) {
  try {
    logger().sinks().push_back(
        std::make_shared<spdlog::sinks::rotating_file_sink_mt>(path, kFileBytesMax, kOlderFiles));
    logger().set_pattern(kPattern);
  } catch (const spdlog::spdlog_ex& failure) {
    return make_error(ErrorCode::kIo, "cannot log to " + path + ": " + failure.what());
  }
  return {};
}

void write_log_line(LogLevel level, std::string_view line) {
  logger().log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace shoal
