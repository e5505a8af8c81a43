// The log sink of the whole build: spdlog on stderr and, when asked for, in a rotated file; each line flushed.
#include "common/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace shoal {
namespace {

constexpr std::size_t kFileBytesMax = 16u << 20;
constexpr std::size_t kOlderFiles = 3;
constexpr char kScreenPattern[] = "%H:%M:%S %^%*%$%v";
constexpr char kFilePattern[] = "%Y-%m-%d %H:%M:%S.%e %-7l %v";

// "warning: " in front of what is no plain information.
class NotableLevel final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    if (message.level == spdlog::level::info) return;
    const spdlog::string_view_t name = spdlog::level::to_string_view(message.level);
    out.append(name.data(), name.data() + name.size());
    const std::string_view gap = ": ";
    out.append(gap.data(), gap.data() + gap.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<NotableLevel>(); }
};

spdlog::logger& logger() {
  // Never destroyed: threads may still log while the process exits.
  static auto* const only = [] {
    auto screen = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<NotableLevel>('*').set_pattern(kScreenPattern);
    screen->set_formatter(std::move(formatter));
    auto* made = new spdlog::logger("shoal", std::move(screen));
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *only;
}

std::shared_ptr<spdlog::sinks::sink>& file() {
  static auto* const only = new std::shared_ptr<spdlog::sinks::sink>;
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
    file() = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(path, kFileBytesMax, kOlderFiles);
    file()->set_pattern(kFilePattern);
    logger().sinks().push_back(file());
  } catch (const spdlog::spdlog_ex& failure) {
    return make_error(ErrorCode::kIo, "cannot log to " + path + ": " + failure.what());
  }
  return {};
}

void write_log_line(LogLevel level, std::string_view line) {
  logger().log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
}

void write_file_line(LogLevel level, std::string_view line) {
  if (file() == nullptr) return;
  file()->log({"shoal", level_of(level), spdlog::string_view_t(line.data(), line.size())});
  file()->flush();
}

}  // namespace shoal
