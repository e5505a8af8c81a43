#pragma once
// How far something that takes its time has come, as a line with rate and time left: state transfer, saving,
// validation, the audit. Pure but for show_headway; thread-safe, but for HeadwayMeter, which is of one thread at a
// time.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/time.h"
#include "metrics/recent_rate.h"

namespace shoal {

struct Headway {
  std::string what;  // "validating"
  std::uint64_t done = 0, total = 0;
  bool bytes = false;  // else pieces: samples, files
};

// "validating 64/128 50%  6.40/s  0:10 left", "saving stage 1 312M/1.10G 28%  72.0M/s  0:11 left"
std::string text_of(const Headway& headway, double per_second, std::optional<Duration> left, std::size_t columns);

// Makes the line of it, once a second at most: what takes less has none. What had a line has one at its end too, so
// that the last one does not stop short of it. Another `what` begins anew.
class HeadwayMeter {
 public:
  static constexpr Duration kPeriod = 1s;
  // None: no line is due.
  std::optional<std::string> line(const Headway& headway, TimePoint now, std::size_t columns);

 private:
  std::string what_;
  std::optional<TimePoint> told_;
  bool shown_ = false;  // has a line that is not the last
  RecentRate rate_{kRateWindow};
};

// How far something is, as the status of this process (common/status_line.h), where a line of it is due.
void show_headway(HeadwayMeter& meter, const Headway& headway);

}  // namespace shoal
