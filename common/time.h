#pragma once
// Monotonic and wall time are different types: every timeout is monotonic, wall time is for records and logs.
#include <chrono>

namespace shoal {

using Duration = std::chrono::nanoseconds;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""us;

struct MonotonicTag {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<MonotonicTag>;
  static constexpr bool is_steady = true;
};
struct WallTag {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<WallTag>;
  static constexpr bool is_steady = false;
};

using TimePoint = std::chrono::time_point<MonotonicTag>;  // since an arbitrary start; comparable within one process
using WallTime = std::chrono::time_point<WallTag>;        // since 1970-01-01 UTC

constexpr double seconds_of(Duration d) { return std::chrono::duration<double>(d).count(); }
constexpr Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

}  // namespace shoal
