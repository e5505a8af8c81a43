#include "transport/address_pace.h"

namespace shoal {

AddressPace::AddressPace(double per_second, double burst) : per_second_(per_second), burst_(burst) {}

bool AddressPace::take(const std::string& address, TimePoint now) {
  if (now - swept_at_ >= from_seconds(burst_ / per_second_)) {
    std::erase_if(buckets_, [&](const auto& entry) { return entry.second.full(now); });
    swept_at_ = now;
  }
  return buckets_.try_emplace(address, per_second_, burst_).first->second.take(now);
}

}  // namespace shoal
