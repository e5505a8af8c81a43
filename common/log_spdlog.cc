// The log sink of the whole build: spdlog on stderr, each line flushed.
#include "common/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace shoal {
namespace {

spdlog::logger& logger() {
  // Never destroyed: threads may still log while the process exits.
  static auto* const only = [] {
    auto* made = new spdlog::logger("shoal", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_level(spdlog::level::trace);
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%-7l%$ %v");
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

void write_log_line(LogLevel level, std::string_view line) {
  logger().log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace shoal
