#include "transport/token_bucket.h"

#include <algorithm>

namespace shoal {

bool TokenBucket::take(TimePoint now) {
  tokens_ = std::min(burst_, tokens_ + per_second_ * seconds_of(now - filled_at_));
  filled_at_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

bool TokenBucket::full(TimePoint now) const { return tokens_ + per_second_ * seconds_of(now - filled_at_) >= burst_; }

}  // namespace shoal
