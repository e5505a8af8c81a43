#pragma once
// How long a job of a device may run before it counts as hung. The authority ends sessions by it, and a peer whose
// session ended so ends its process: they must agree. Pure. Thread: any.
#include <algorithm>

#include "common/time.h"

namespace shoal {

inline constexpr Duration kFirstJob = 300s;     // of a kind in a session: nothing of it is measured
inline constexpr double kJobFactor = 4;         // times the longest measured
inline constexpr Duration kPatienceMax = 600s;  // whatever was measured

// `longest`: of the finished jobs of its kind; zero: none. `membership`: the least patience.
inline Duration job_patience(Duration longest, Duration membership) {
  const Duration measured = from_seconds(kJobFactor * seconds_of(longest));
  return std::max(membership, longest == Duration::zero() ? kFirstJob : std::min(measured, kPatienceMax));
}

}  // namespace shoal
