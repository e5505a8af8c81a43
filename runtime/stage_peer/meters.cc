#include "runtime/stage_peer/meters.h"

namespace shoal {

void Meters::computed(double forward_us, double backward_us) {
  constexpr double kNewest = 1.0 / 16;  // share of the newest one in the mean
  const auto note = [](std::optional<double>& mean, double us) { mean = mean ? *mean + kNewest * (us - *mean) : us; };
  note(readings_.forward_us, forward_us);
  note(readings_.backward_us, backward_us);
}

void Meters::encoded(std::size_t bytes) {
  if (bytes == 0) return;
  readings_.payload_bytes += bytes;
  readings_.fp32_bytes += activation_bytes_;
}

// A step in which this replica has no part says nothing of the delay.
void Meters::stepped(const DelayHistogram& delays) {
  ++readings_.inner_steps;
  if (delays.total() == 0) return;
  delays_.push_back(delays);
  if (delays_.size() > kDelayWindows) delays_.pop_front();
  DelayHistogram recent;
  for (const DelayHistogram& window : delays_) recent.merge(window);
  readings_.delay = recent.mean();
}

void Meters::measure(std::uint64_t counted, TimePoint now) {
  if (now - rate_since_ < kRatePeriod) return;
  readings_.rate = static_cast<double>((counted - rate_counted_) * targets_) / seconds_of(now - rate_since_);
  rate_counted_ = counted;
  rate_since_ = now;
}

}  // namespace shoal
