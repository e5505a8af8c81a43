#pragma once
// How fast a count grows, over the last seconds. What comes in pieces further apart than that is not 0 between them:
// then the last two growths tell. Pure; the time is passed in. Thread: one at a time.
#include <cstddef>
#include <deque>
#include <optional>

#include "common/time.h"

namespace shoal {

inline constexpr Duration kRateWindow = 10s;      // of what is shown as the rate now
inline constexpr Duration kTimeLeftWindow = 60s;  // of what tells when a run ends

class RecentRate {
 public:
  // Whatever grew no more for so many windows stands still.
  static constexpr int kWindowsMax = 30;

  explicit RecentRate(Duration window) : window_(window) {}
  // `total` so far. A smaller one than before begins anew.
  void note(double total, TimePoint now);
  // A second, as of the last note; 0 before two of them.
  double per_second() const;
  // How long `rest` more will take; none while nothing grows.
  std::optional<Duration> time_for(double rest) const;

 private:
  struct Sample {
    double total = 0;
    TimePoint at;
  };
  Duration window_;
  std::deque<Sample> samples_;  // by time; the last one is of now. Bound: some 20 a window, of kWindowsMax
};

}  // namespace shoal
