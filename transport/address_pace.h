#pragma once
// How often each address may open connections: whoever opens them without end is cut before the exchange of keys, which
// costs more than all the rest of a connection.
//
// Thread: one.   Bounds: the addresses that came within the time in which an empty bucket fills.
#include <string>
#include <unordered_map>

#include "common/time.h"
#include "transport/token_bucket.h"

namespace shoal {

class AddressPace {
 public:
  // REQUIRES: both above zero.
  AddressPace(double per_second, double burst);
  // False: `address` comes too often. Time never goes back.
  bool take(const std::string& address, TimePoint now);
  std::size_t size() const { return buckets_.size(); }

 private:
  double per_second_, burst_;
  std::unordered_map<std::string, TokenBucket> buckets_;  // without those that are full again
  TimePoint swept_at_{};
};

}  // namespace shoal
