#pragma once
// How fast one donor gives chunks, and how many to ask of it at a time: twice what its line holds in a round trip
// (Cardwell et al. 2016, BBR: bandwidth times the shortest delay), so that the line is full and a faster one is found.
// Value.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/time.h"

namespace shoal {

class DonorPace {
 public:
  static constexpr std::size_t kWindowMin = 2, kWindowMax = 64;  // chunks

  // A chunk of so many bytes, which was asked for at `asked`.
  void came(std::uint64_t bytes, TimePoint asked, TimePoint now) {
    const Duration took = now - asked;
    shortest_ = shortest_ > Duration(0) ? std::min(shortest_, took) : took;
    span_ += std::max(Duration(0), now - std::max(asked, last_));
    last_ = now;
    span_bytes_ += bytes;
    largest_ = std::max(largest_, bytes);
    if (span_ < kSpan && rate_ > 0) return;
    const double measured = static_cast<double>(span_bytes_) / std::max(1e-6, seconds_of(span_));
    // The mean is of the times for a byte: so a burst at the beginning is soon forgotten.
    rate_ = rate_ > 0 ? 2 / (1 / rate_ + 1 / measured) : measured;
    span_ = Duration(0);
    span_bytes_ = 0;
  }
  double bytes_per_second() const { return rate_; }  // 0: not known
  std::size_t window() const {
    if (rate_ == 0) return kWindowMin;
    const double held = rate_ * seconds_of(shortest_);
    const double chunks = std::ceil(2 * held / static_cast<double>(largest_));
    return std::clamp(static_cast<std::size_t>(chunks), kWindowMin, kWindowMax);
  }
  // Until so many bytes are here; zero when nothing is known.
  Duration time_for(std::uint64_t bytes) const {
    return rate_ > 0 ? from_seconds(static_cast<double>(bytes) / rate_) : Duration(0);
  }

 private:
  static constexpr Duration kSpan = 200ms;  // that one measurement covers at least, behind the first
  Duration shortest_{};                     // from a question to its chunk
  TimePoint last_{};
  Duration span_{};  // in which chunks were on their way, since the last measurement
  std::uint64_t span_bytes_ = 0, largest_ = 0;
  double rate_ = 0;
};

}  // namespace shoal
