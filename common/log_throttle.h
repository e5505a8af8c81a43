#pragma once
// Keeps one cause from filling the log: of each, a line at once, then at most one per interval that says how often it
// happened meanwhile. For lines that a message from outside can bring about.
//
//   if (const auto times = throttle.due("malformed " + peer, now)) log_warning("...", LogThrottle::text_of(*times));
//
// Thread: one.   Bounds: kCausesMax causes are told apart at a time; more share one line.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/time.h"

namespace shoal {

class LogThrottle {
 public:
  static constexpr Duration kInterval = 10s;
  static constexpr std::size_t kCausesMax = 64;

  // How often `cause` happened since it was last said, this time included. None: not to be said now.
  std::optional<std::uint64_t> due(const std::string& cause, TimePoint now);
  // " (7 times since this was last said)"; empty for once.
  static std::string text_of(std::uint64_t times);

 private:
  struct Said {
    TimePoint next{};
    std::uint64_t times = 0;
  };
  std::map<std::string, Said> said_;
};

}  // namespace shoal
