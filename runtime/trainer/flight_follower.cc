#include "runtime/trainer/flight_follower.h"

#include <algorithm>

namespace shoal {

void FlightFollower::bound(std::uint64_t least, std::uint64_t most) {
  least_ = least;
  most_ = most;
  in_flight_ = std::clamp(in_flight_, least, most);
}

bool FlightFollower::decided(Duration took, bool under_way) {
  const double seconds = seconds_of(took);
  if (seconds <= 0) return false;
  if (least_time_ == 0 || seconds < least_time_) least_time_ = seconds;
  times_.push_back(seconds);
  if (times_.size() < in_flight_) return false;
  const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
  std::nth_element(times_.begin(), middle, times_.end());
  const double time = *middle;
  times_.clear();
  if (!under_way) return false;
  const double wait = static_cast<double>(in_flight_) * (1 - least_time_ / time) / static_cast<double>(peers_);
  const std::uint64_t before = in_flight_;
  if (wait < kWaitLeast) in_flight_ = std::min(most_, in_flight_ + replicas_);
  if (wait > kWaitMost) in_flight_ = std::max(least_, in_flight_ - std::min(in_flight_, replicas_));
  return in_flight_ != before;
}

}  // namespace shoal
