#pragma once
// How fast the other end takes our bulk bytes, measured from its byte credits. Pure: time is given.
//
// A sample is the time between two credits while bytes were outstanding all along, so that the round trip before the
// first credit of a busy spell is not taken for slowness. A spell with one credit counts its time less the round trip.
// Samples enter an EMA weighted by their bytes. Thread: loop only.
#include <cstdint>

#include "common/time.h"

namespace shoal {

class RateMeter {
 public:
  void on_sent(TimePoint now, std::uint64_t bytes);
  // `rtt`: smoothed round trip of small messages; 0 = not known.
  void on_delivered(TimePoint now, std::uint64_t bytes, Duration rtt);
  std::uint64_t in_flight() const { return in_flight_; }
  double bytes_per_second() const { return rate_; }  // 0 = not measured yet

 private:
  void sample(std::uint64_t bytes, Duration time);

  std::uint64_t in_flight_ = 0;
  std::uint64_t pending_ = 0;  // delivered since `since_`, not in a sample yet
  TimePoint since_{};          // start of the spell, or the credit that ended the last sample
  bool first_of_spell_ = true;
  double rate_ = 0;
};

}  // namespace shoal
