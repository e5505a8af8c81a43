#pragma once
// So many a second in the long run, and so many at once. Pure: time is given. Thread: one.
#include "common/time.h"

namespace shoal {

class TokenBucket {
 public:
  // REQUIRES: both above zero.
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}
  // False: none is left. Time never goes back.
  bool take(TimePoint now);
  bool full(TimePoint now) const;

 private:
  double per_second_, burst_, tokens_;
  TimePoint filled_at_{};
};

}  // namespace shoal
