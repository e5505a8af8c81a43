#pragma once
// How many microbatches are under way where [pipeline] in_flight is "auto": the plan's number takes a hop to last as
// long as a pass (runtime/plan/flight_plan.h), and lines may be slower. More are issued while they find the pipe empty,
// and fewer again when they only wait.
//
// The rule is TCP Vegas's (Brakmo and Peterson 1995): of n under way that take T each, n (1 - T0 / T) wait, T0 being
// what a microbatch took when none waited. Each stage passes it twice, by a device and over a line, and each of these
// is idle in turns unless something waits there: fewer than kWaitLeast waiting for each stage of a replica are too few,
// more than kWaitMost too many. T is the median of the last n microbatches, T0 the shortest time of one since the
// members last changed: the first ones of a run, and those on a ramp, wait for nobody.
//
// State machine without I/O, threads or clock. Thread: loop only. Bounds: the durations of one number's microbatches.
#include <cstdint>
#include <vector>

#include "common/time.h"

namespace shoal {

class FlightFollower {
 public:
  static constexpr double kWaitLeast = 2, kWaitMost = 4;  // of each stage of a replica

  // REQUIRES: none of them is 0.
  FlightFollower(std::uint64_t replicas, std::uint64_t stages) : replicas_(replicas), peers_(replicas * stages) {}

  // Now between `least`, where it begins, and `most`, in steps of `replicas`: both rise along a ramp.
  // REQUIRES: 0 < least <= most.
  void bound(std::uint64_t least, std::uint64_t most);
  // A microbatch took so long from its first Forward to its path. `under_way`: as many as may be, and not fewer for
  // want of samples or peers. True: the number is another one now.
  bool decided(Duration took, bool under_way);
  // Other members: what was learnt of the time without waiting is none of theirs.
  void forget() { least_time_ = 0; }
  std::uint64_t in_flight() const { return in_flight_; }

 private:
  std::uint64_t replicas_, peers_, least_ = 0, most_ = 0, in_flight_ = 0;
  double least_time_ = 0;      // seconds; 0: none yet
  std::vector<double> times_;  // of this number so far
};

}  // namespace shoal
