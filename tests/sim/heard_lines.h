#pragma once
// The lines that this process would log, while it lives. One at a time.
#include <string>
#include <string_view>
#include <vector>

#include "common/log.h"

namespace shoal {

class HeardLines {
 public:
  HeardLines() {
    set_log_level(LogLevel::kInfo);  // another test of the program may have left it higher
    set_log_sink([this](LogLevel, std::string_view line) { lines_.emplace_back(line); });
  }
  ~HeardLines() { set_log_sink({}); }
  HeardLines(const HeardLines&) = delete;
  HeardLines& operator=(const HeardLines&) = delete;

  std::size_t with(std::string_view part) const {
    std::size_t count = 0;
    for (const std::string& line : lines_) count += line.find(part) != std::string::npos ? 1 : 0;
    return count;
  }

 private:
  std::vector<std::string> lines_;
};

}  // namespace shoal
