#include "metrics/recent_rate.h"

#include <algorithm>

namespace shoal {

namespace {
constexpr int kSamplesInWindow = 20;
constexpr double kSecondsMax = 1e9;  // 30 years: beyond what a duration of ours has to hold
}  // namespace

void RecentRate::note(double total, TimePoint now) {
  if (!samples_.empty() && total < samples_.back().total) samples_.clear();
  // The last sample is moved on while it tells nothing more than the one before it.
  const std::size_t count = samples_.size();
  const bool flat = count >= 2 && samples_[count - 2].total == total && samples_.back().total == total;
  const bool near = count >= 2 && samples_.back().at - samples_[count - 2].at < window_ / kSamplesInWindow;
  if (flat || near)
    samples_.back() = {total, now};
  else
    samples_.push_back({total, now});
  while (samples_.size() > 2 && now - samples_[1].at >= kWindowsMax * window_) samples_.pop_front();
}

double RecentRate::per_second() const {
  if (samples_.size() < 2) return 0;
  const Sample& last = samples_.back();
  if (last.at - samples_.front().at <= Duration(0)) return 0;
  // The newest sample that is a window old, or from where on it has grown.
  auto base = samples_.end() - 1;
  while (base != samples_.begin() && (last.at - base->at < window_ || base->total == last.total)) --base;
  if (base->total == last.total || last.at - base->at > kWindowsMax * window_) return 0;
  return (last.total - base->total) / seconds_of(last.at - base->at);
}

std::optional<Duration> RecentRate::time_for(double rest) const {
  const double rate = per_second();
  if (rate <= 0) return std::nullopt;
  return from_seconds(std::min(std::max(0.0, rest) / rate, kSecondsMax));
}

}  // namespace shoal
