#include "events/headway.h"

#include "common/os/thread_loop.h"
#include "common/status_line.h"
#include "events/line_parts.h"

namespace shoal {

std::string text_of(const Headway& headway, double per_second, std::optional<Duration> left, std::size_t columns) {
  const std::string count = short_number(headway.done) + "/" + short_number(headway.total);
  const std::string rate = short_number(per_second) + (headway.bytes ? "B/s" : "/s");
  return fitted({{headway.what, 0},
                 {count, 0},
                 {percent_text(headway.done, headway.total), 0},
                 {per_second > 0 ? rate : "", 1},
                 {left && headway.done < headway.total ? span_text(*left) + " left" : "", 2}},
                columns);
}

std::optional<std::string> HeadwayMeter::line(const Headway& headway, TimePoint now, std::size_t columns) {
  if (what_ != headway.what) {
    what_ = headway.what;
    told_ = now;  // what is done within a period needs no line
    shown_ = false;
    rate_ = RecentRate(kRateWindow);
    rate_.note(static_cast<double>(headway.done), now);
    return std::nullopt;
  }
  rate_.note(static_cast<double>(headway.done), now);
  const bool over = shown_ && headway.done >= headway.total;
  if (!over && now - *told_ < kPeriod) return std::nullopt;
  told_ = now;
  shown_ = headway.done < headway.total;
  const double rest = static_cast<double>(headway.total > headway.done ? headway.total - headway.done : 0);
  return text_of(headway, rate_.per_second(), rate_.time_for(rest), columns);
}

void show_headway(HeadwayMeter& meter, const Headway& headway) {
  if (const auto line = meter.line(headway, monotonic_now(), status_columns())) show_status(*line);
}

}  // namespace shoal
