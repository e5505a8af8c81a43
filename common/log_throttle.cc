#include "common/log_throttle.h"

#include <utility>

namespace shoal {

std::optional<std::uint64_t> LogThrottle::due(const std::string& cause, TimePoint now) {
  if (said_.size() >= kCausesMax && !said_.contains(cause))
    std::erase_if(said_, [&](const auto& entry) {
      const Said& said = entry.second;
      return said.next + kInterval <= now || (said.next <= now && said.times == 0);
    });
  const bool room = said_.size() < kCausesMax || said_.contains(cause);
  Said& said = said_[room ? cause : ""];
  ++said.times;
  if (now < said.next) return std::nullopt;
  said.next = now + kInterval;
  return std::exchange(said.times, 0);
}

std::string LogThrottle::text_of(std::uint64_t times) {
  return times <= 1 ? "" : " (" + std::to_string(times) + " times since this was last said)";
}

}  // namespace shoal
